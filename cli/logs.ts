import { type Client, ClientError } from "./client.ts";
import { isOver, stateOf } from "./follow.ts";
import { LogReader } from "./log-reader.ts";
import { brokenStream, Patience } from "./patience.ts";
import { type Printed, printedSoFar } from "./printed.ts";
import { note, WaitLine } from "./progress.ts";
import { tellWaits } from "./waiting.ts";

/** Without --follow: how long what is there may take to come, longer than the platform works at any one answer. */
const SILENCE_MS = 30_000;

/**
 * Writes what a workload had printed when it was asked to stdout, byte for byte. What does not come is asked for again,
 * so a short log is never taken for a whole one; throws `PlatformLost` when it stays away.
 */
export async function showLogs(
  client: Client,
  workloadId: string,
  patience = new Patience(),
  silenceMs = SILENCE_MS,
): Promise<void> {
  const reader = new LogReader(client, workloadId, new WaitLine());
  let printed = await printedSoFar(client, workloadId); // refuses an unknown id, and a platform that is not there, at once
  while (!isShown(printed, reader)) {
    const upTo = printed.isWhole ? null : printed.place;
    try {
      if (await reader.read({ upTo, silenceMs, onItem: () => patience.answered() })) break;
      throw brokenStream();
    } catch (error) {
      await patience.bear(error);
    }
    printed = await patience.through(() => printedSoFar(client, workloadId));
  }
  if (reader.isComplete) return;
  if (!printed.place) note(`It has printed nothing so far: it is ${printed.status}.`);
  else if (isOver(printed.status)) note("[the end of the log is not here yet]");
}

/** Nothing is left to be shown but what will be printed later. */
function isShown({ isWhole, place }: Printed, reader: LogReader): boolean {
  return !isWhole && (!place || reader.isPast(place));
}

/**
 * Writes a workload's output to stdout as it comes, byte for byte, until it ends, and exits 1 unless it completed. What it
 * waits for meanwhile goes to stderr. When the platform is lost it goes on at the same byte once that is back. `known` is a
 * status that was just read.
 */
export async function followLogs(client: Client, workloadId: string, known?: string): Promise<void> {
  const status = known ?? (await stateOf(client, workloadId)).status;
  const line = new WaitLine();
  if (!isOver(status)) line.show(status);
  const logged = new AbortController();
  const tell = (sentence: string) => {
    line.clear();
    note(sentence);
  };
  // Not the command that was given: another submit would be another workload.
  const patience = new Patience({ tell, later: `nodus logs -f ${workloadId} shows its output from the beginning` });
  const waits = tellWaits(client, workloadId, tell, logged.signal).catch((error: unknown) => {
    if (!(error instanceof ClientError)) return error; // a fault of ours, told once the log has ended
    tell(`What it waits for is not told any more. ${error.message}`); // it decides nothing about the workload
  });
  const stay = tellWhenLeft(workloadId, tell);
  await readToEnd(client, workloadId, line, patience).finally(() => logged.abort());
  stay();
  const end = await patience.through(() => stateOf(client, workloadId));
  note(`${end.status}${end.reason ? ` (${end.reason})` : ""}${end.message ? `: ${end.message}` : ""}`);
  if (end.status !== "completed") process.exitCode = 1;
  const fault = await waits;
  if (fault) throw fault;
}

/** Says at Ctrl-C that only the looking on ends, and how to look on again. The function that it returns takes that back. */
function tellWhenLeft(workloadId: string, tell: (sentence: string) => void): () => void {
  const leave = () => {
    tell(`The workload goes on: nodus logs -f ${workloadId} follows it again, nodus cancel ${workloadId} ends it.`);
    process.kill(process.pid, "SIGINT"); // nobody listens any more: ends as any interrupted program does
  };
  process.once("SIGINT", leave);
  return () => void process.off("SIGINT", leave);
}

async function readToEnd(client: Client, workloadId: string, line: WaitLine, patience: Patience): Promise<void> {
  const reader = new LogReader(client, workloadId, line);
  for (;;) {
    try {
      if (await reader.read({ onItem: () => patience.answered() })) break;
      throw brokenStream();
    } catch (error) {
      await patience.bear(error);
    }
    await patience.through(() => stateOf(client, workloadId));
  }
  line.clear();
}
