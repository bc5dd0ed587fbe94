import { isId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { follow, type Page } from "../../../infra/live/follow.ts";
import type { ComputeContext } from "../compute-context.ts";
import { topics } from "../topics.ts";
import { isStageId } from "../workload/validate/names.ts";
import { formatLogCursor, parseLogCursor } from "./log-cursor.ts";
import type { LogEnd, WorkloadLogItem } from "./log-item.ts";
import { GONE, type LogRun, type LogRuns, logRuns } from "./log-runs.ts";
import { type LogPage, type LogPiece, type LogRead, readLog } from "./log-source.ts";
import { HELD_BYTES, Utf8Holder } from "./utf8-holder.ts";

export interface LogSubscription {
  tenantId: string;
  workloadId: string;
  after: string | null;
  /** Only this stage; every one unless given. */
  stageId: string | null;
  /** Only this generation; every one unless given. */
  generation: number | null;
}

type Source = Pick<ComputeContext, "db" | "compute">;

type LogStreamPage = Page<WorkloadLogItem, Standing | null>;

/** Log bytes after a cursor, then live, an item with the end of every generation, and one that ends the stream. */
export async function followLog(source: Source, ask: LogSubscription): Promise<AsyncIterable<WorkloadLogItem>> {
  const { tenantId, workloadId, stageId, generation } = ask;
  if (stageId !== null && !isStageId(stageId))
    throw new Refused(COMMON.invalid_request, { field: "/stageId", message: "This is no stage's id." });
  const runs = isId("workload", workloadId) ? await logRuns(source.db, ask) : null;
  if (!runs) throw new Refused(COMMON.not_found, { field: "/workloadId" });
  return follow<WorkloadLogItem, Standing | null>({
    wakeups: source.compute.wakeups,
    topic: topics.log(workloadId),
    after: await startOf(source, runs, ask.after),
    share: (at) => JSON.stringify([tenantId, stageId, generation, at && [at.run.id, at.bytes]]),
    read: (at) => readPage(source, ask, at),
  });
}

/** Where a reader stands within one generation. */
interface Standing {
  readonly run: LogRun;
  readonly bytes: number;
  readonly afterSeq: number;
  /** The last bytes before it: a character may have begun there. */
  readonly tail: Uint8Array;
}

/** The place of a cursor; null before anything has run. Refused when there is no such place. */
async function startOf(source: Source, { runs }: LogRuns, after: string | null): Promise<Standing | null> {
  const start = parseLogCursor(after);
  if (!start) return null;
  const run = runs.find((r) => r.stageId === start.stageId && r.generation === start.generation);
  if (!run || start.bytes > run.logBytes) throw new Refused(COMMON.invalid_cursor, { field: "/after" });
  const from = Math.max(0, start.bytes - HELD_BYTES);
  const { pieces } = await read(source, run, { from, afterSeq: 0 });
  const tail = joined(pieces).subarray(0, start.bytes - from);
  return { run, bytes: start.bytes, afterSeq: 0, tail };
}

/** Walks the generations of a workload in the order in which they ran. */
async function readPage(source: Source, ask: LogSubscription, after: Standing | null): Promise<LogStreamPage> {
  const { over, runs } = (await logRuns(source.db, ask)) ?? GONE;
  const before = after ?? (runs[0] ? beginning(runs[0], 0) : null);
  if (!before) return page(over ? [nothing()] : [], null, over, false);
  const at = { ...before, run: runs.find((run) => run.id === before.run.id) ?? before.run };
  const { pieces, afterSeq, more } = await newPieces(source, at);
  const { items, next } = itemsOf({ ...at, afterSeq }, joined(pieces));
  if (items.length > 0 || !isWhole(next)) return page(items, next, false, more || isWhole(next));
  return endOf(ask, next, runs, over);
}

/** Nothing is looked for where a reader has all there is, as most have at most looks. */
async function newPieces(source: Source, { run, bytes: from, afterSeq }: Standing): Promise<LogPage> {
  if (run.logBytes <= from) return { pieces: [], afterSeq, more: false };
  return read(source, run, { from, afterSeq });
}

/** All bytes of a generation were read: on to the next one, if there is or may be one. */
function endOf(ask: LogSubscription, at: Standing, runs: readonly LogRun[], over: boolean): LogStreamPage {
  const following = runs[runs.findIndex((run) => run.id === at.run.id) + 1];
  if (following) return page([end(at, false)], beginning(following, at.afterSeq), false, true);
  // Another generation may follow until the workload is over, unless one alone was asked for.
  if (!over && !(ask.generation !== null && ask.stageId !== null)) return page([], at, false, false);
  return page([end(at, true)], at, true, false);
}

function read({ db, compute }: Source, run: LogRun, place: LogRead): Promise<LogPage> {
  return readLog(db, compute.objects, run, place);
}

/** Bytes as items, and where a reader stands after them. */
function itemsOf(at: Standing, bytes: Buffer): { items: WorkloadLogItem[]; next: Standing } {
  const holder = new Utf8Holder(at.tail);
  const { stageId, generation } = at.run;
  let offset = at.bytes;
  const items = inItems(bytes).map((piece): WorkloadLogItem => {
    const [data, text] = [piece.toString("base64"), holder.text(piece)];
    const item = { stageId, generation, offset, data, text, end: null, complete: false };
    offset += piece.length;
    return { ...item, cursor: formatLogCursor({ stageId, generation, bytes: offset }) };
  });
  if (items.length === 0) return { items, next: at };
  const tail = Buffer.concat([at.tail, bytes.subarray(-HELD_BYTES)]).subarray(-HELD_BYTES);
  return { items, next: { ...at, bytes: offset, tail } };
}

function end({ run, bytes, tail }: Standing, complete: boolean): WorkloadLogItem {
  const { stageId, generation, logBytes: totalBytes, logTruncated: truncated, logTailLost: tailLost } = run;
  return {
    ...{ cursor: formatLogCursor({ stageId, generation, bytes }), stageId, generation, offset: bytes },
    ...{ data: "", text: new Utf8Holder(tail).end(), complete },
    end: { totalBytes, sha256: tailLost ? null : run.logSha256, truncated, tailLost },
  };
}

function page(rows: WorkloadLogItem[], after: Standing | null, done: boolean, more: boolean): LogStreamPage {
  return { rows, after, done, more };
}

function beginning(run: LogRun, afterSeq: number): Standing {
  return { run, bytes: 0, afterSeq, tail: Buffer.alloc(0) };
}

/** Nothing more of this generation's log can come. */
function isWhole({ run, bytes }: Standing): boolean {
  return run.logComplete && bytes >= run.logBytes;
}

function joined(pieces: readonly LogPiece[]): Buffer {
  return Buffer.concat(pieces.map((piece) => piece.bytes));
}

/** Bytes as items of one size, however they were written: neither a message for each line nor one that is huge. */
function inItems(all: Buffer): Buffer[] {
  const items: Buffer[] = [];
  for (let at = 0; at < all.length; at += LIMITS.logChunkBytes) items.push(all.subarray(at, at + LIMITS.logChunkBytes));
  return items;
}

/** The last item of a workload that ended before anything ran. */
function nothing(): WorkloadLogItem {
  const end: LogEnd = { totalBytes: 0, sha256: null, truncated: false, tailLost: false };
  return { cursor: "", stageId: null, generation: null, offset: 0, data: "", text: "", end, complete: true };
}
