import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "./client.ts";
import { isOver, stateOf } from "./follow.ts";
import { brokenStream, Patience } from "./patience.ts";
import { note, WaitLine } from "./progress.ts";
import { tellWaits } from "./waiting.ts";

interface LogItem {
  data: string;
  cursor: string;
  complete: boolean;
  /** Of a generation that is over. */
  end: { truncated: boolean; tailLost: boolean } | null;
}

const LOGS = `subscription logs($id: ID!, $after: String) {
  workloadLogs(workloadId: $id, after: $after) { data cursor complete end { truncated tailLost } }
}`;

/** Without --follow: how long nothing new may come before what is there has been shown. */
const QUIET_MS = 700;

/** Writes what a workload has printed so far to stdout, byte for byte. */
export async function showLogs(client: Client, workloadId: string): Promise<void> {
  await stateOf(client, workloadId); // refuses an unknown id before waiting for it
  await new LogReader(client, workloadId, new WaitLine()).read({ quietMs: QUIET_MS });
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
  const waits = tellWaits(client, workloadId, tell, logged.signal);
  waits.catch(() => {}); // told once the log has ended
  const stay = tellWhenLeft(workloadId, tell);
  await readToEnd(client, workloadId, line, patience).finally(() => logged.abort());
  stay();
  await waits;
  const end = await patience.through(() => stateOf(client, workloadId));
  note(`${end.status}${end.reason ? ` (${end.reason})` : ""}${end.message ? `: ${end.message}` : ""}`);
  if (end.status !== "completed") process.exitCode = 1;
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

/** Writes a log to stdout, each byte once however often it is read: it knows how far it has come. */
class LogReader {
  readonly #client: Client;
  readonly #workloadId: string;
  readonly #line: WaitLine;
  #after: string | null = null;

  constructor(client: Client, workloadId: string, line: WaitLine) {
    this.#client = client;
    this.#workloadId = workloadId;
    this.#line = line;
  }

  /** Goes on where it was, until the log is complete (then true), its stream ends, or nothing came for `quietMs`. */
  async read({ quietMs, onItem }: { quietMs?: number; onItem?: () => void }): Promise<boolean> {
    const variables = { id: this.#workloadId, after: this.#after };
    const items = this.#client.subscribe<{ workloadLogs: LogItem }>(LOGS, variables);
    try {
      for (;;) {
        const next = await (quietMs === undefined
          ? items.next()
          : Promise.race([items.next(), sleep(quietMs, null, { ref: false })]));
        if (next === null || next.done) return false;
        this.#write(next.value.workloadLogs);
        onItem?.();
        if (next.value.workloadLogs.complete) return true;
      }
    } finally {
      await items.return?.();
    }
  }

  #write({ data, cursor, end }: LogItem): void {
    this.#line.clear();
    process.stdout.write(Buffer.from(data, "base64"));
    this.#after = cursor;
    if (end?.truncated) note("[the log was cut off at its limit]");
    if (end?.tailLost) note("[the end of the log was lost with its machine]");
  }
}
