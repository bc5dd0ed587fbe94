import { setTimeout as sleep } from "node:timers/promises";
import { type Client, ClientError } from "./client.ts";
import { isOver, stateOf } from "./follow.ts";
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

/** How long to wait before a stream that broke is taken up again at its cursor. */
const RECONNECT_MS = 1_000;
/** Without --follow: how long nothing new may come before what is there has been shown. */
const QUIET_MS = 700;

/**
 * Writes a workload's output to stdout, byte for byte; with `follow` until it ends, then exits 1 unless it completed. What
 * it waits for meanwhile goes to stderr.
 */
export async function showLogs(client: Client, workloadId: string, follow: boolean): Promise<void> {
  const { status } = await stateOf(client, workloadId); // refuses an unknown id before waiting for it
  const line = new WaitLine();
  if (!follow) return void (await pump(client, workloadId, null, false, line));
  if (!isOver(status)) line.show(status);
  const logged = new AbortController();
  const tell = (sentence: string) => {
    line.clear();
    note(sentence);
  };
  const waits = tellWaits(client, workloadId, tell, logged.signal);
  waits.catch(() => {}); // told once the log has ended
  await pumpToEnd(client, workloadId, line).finally(() => logged.abort());
  await waits;
  const end = await stateOf(client, workloadId);
  note(`${end.status}${end.reason ? ` (${end.reason})` : ""}${end.message ? `: ${end.message}` : ""}`);
  if (end.status !== "completed") process.exitCode = 1;
}

async function pumpToEnd(client: Client, workloadId: string, line: WaitLine): Promise<void> {
  let after: string | null = null;
  for (;;) {
    const ended = await pump(client, workloadId, after, true, line);
    if (ended.complete) break;
    after = ended.after;
    await sleep(RECONNECT_MS);
  }
  line.clear();
}

async function pump(client: Client, workloadId: string, from: string | null, follow: boolean, line: WaitLine) {
  let after = from;
  const items = client.subscribe<{ workloadLogs: LogItem }>(LOGS, { id: workloadId, after });
  try {
    for (;;) {
      const next = await (follow ? items.next() : Promise.race([items.next(), sleep(QUIET_MS, null)]));
      if (next === null || next.done) break;
      const item = next.value.workloadLogs;
      line.clear();
      process.stdout.write(Buffer.from(item.data, "base64"));
      if (item.end?.truncated) note("[the log was cut off at its limit]");
      if (item.end?.tailLost) note("[the end of the log was lost with its machine]");
      after = item.cursor;
      if (item.complete) return { complete: true, after };
    }
  } catch (error) {
    if (error instanceof ClientError) throw error; // refused; anything else is a connection that broke
  } finally {
    await items.return?.();
  }
  return { complete: false, after };
}
