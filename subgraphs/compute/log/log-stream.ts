import { instance, selectList } from "../../../infra/db/columns.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { follow, type Page } from "../../../infra/live/follow.ts";
import type { ComputeContext } from "../compute-context.ts";
import { Placement } from "../placement/placement.entity.ts";
import { topics } from "../topics.ts";
import { isStageId } from "../workload/validate/names.ts";
import { isTerminal, type WorkloadState } from "../workload/workload.machine.ts";
import { findWorkload } from "../workload/workload.reads.ts";
import { formatLogCursor, parseLogCursor } from "./log-cursor.ts";
import type { LogEnd, WorkloadLogItem } from "./log-item.ts";
import { type LogPiece, type LogRead, readLog } from "./log-source.ts";
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

/** Log bytes after a cursor, then live, an item with the end of every generation, and one that ends the stream. */
export async function followLog(source: Source, ask: LogSubscription): Promise<AsyncIterable<WorkloadLogItem>> {
  if (ask.stageId !== null && !isStageId(ask.stageId))
    throw new Refused(COMMON.invalid_request, { field: "/stageId", message: "This is no stage's id." });
  if (!(await findWorkload(source.db, ask.tenantId, ask.workloadId)))
    throw new Refused(COMMON.not_found, { field: "/workloadId" });
  const reader = new LogReader(source, ask);
  await reader.open();
  return follow<WorkloadLogItem, number>({
    wakeups: source.compute.wakeups,
    topic: topics.log(ask.workloadId),
    after: 0,
    read: (turn) => reader.read(turn),
  });
}

/** Where a reader stands within one generation. */
interface Standing {
  placement: Placement;
  bytes: number;
  afterSeq: number;
  holder: Utf8Holder;
}

/** Walks the generations of a workload in the order in which they ran. One reader serves one stream. */
class LogReader {
  readonly #source: Source;
  readonly #ask: LogSubscription;
  #at: Standing | null = null;

  constructor(source: Source, ask: LogSubscription) {
    this.#source = source;
    this.#ask = ask;
  }

  /** Goes to the cursor; refused when there is no such place. */
  async open(): Promise<void> {
    const start = parseLogCursor(this.#ask.after);
    if (!start) return;
    const { generations } = await this.#runs();
    const placement = generations.find((p) => p.stageId === start.stageId && p.generation === start.generation);
    if (!placement || start.bytes > placement.logBytes) throw new Refused(COMMON.invalid_cursor, { field: "/after" });
    // A character may have begun before the cursor: its text belongs to what follows.
    const from = Math.max(0, start.bytes - HELD_BYTES);
    const { pieces } = await this.#read(placement, { from, afterSeq: 0 });
    const before = Buffer.concat(pieces.map((piece) => piece.bytes)).subarray(0, start.bytes - from);
    this.#at = { placement, bytes: start.bytes, afterSeq: 0, holder: new Utf8Holder(before) };
  }

  async read(turn: number): Promise<Page<WorkloadLogItem, number>> {
    const { over, generations } = await this.#runs();
    if (!this.#at && generations[0]) this.#at = standing(generations[0], 0);
    const at = this.#at;
    if (!at) return this.#page(turn, over ? [nothing()] : [], over, false);
    at.placement = generations.find((p) => p.id === at.placement.id) ?? at.placement;
    const { pieces, afterSeq, more } = await this.#read(at.placement, { from: at.bytes, afterSeq: at.afterSeq });
    at.afterSeq = afterSeq;
    const items = inItems(pieces).map((bytes) => this.#item(at, bytes));
    if (items.length > 0 || !isWhole(at)) return this.#page(turn, items, false, more || isWhole(at));
    return this.#finish(turn, at, generations, over);
  }

  /** All bytes of a generation were read: on to the next one, if there is or may be one. */
  #finish(turn: number, at: Standing, generations: Placement[], over: boolean): Page<WorkloadLogItem, number> {
    const next = generations[generations.findIndex((p) => p.id === at.placement.id) + 1];
    if (next) {
      this.#at = standing(next, at.afterSeq);
      return this.#page(turn, [this.#end(at, false)], false, true);
    }
    // Another generation may follow until the workload is over, unless one alone was asked for.
    if (!over && !(this.#ask.generation !== null && this.#ask.stageId !== null))
      return this.#page(turn, [], false, false);
    return this.#page(turn, [this.#end(at, true)], true, false);
  }

  /** The generations in the order in which they ran, and whether another may follow: as of one moment. */
  async #runs(): Promise<{ over: boolean; generations: Placement[] }> {
    const { tenantId, workloadId, stageId, generation } = this.#ask;
    const rows = await this.#source.db.sql<{ workloadStatus: WorkloadState; id: string | null }>(
      `select w.status as "workloadStatus", ${selectList(Placement)}
       from compute.workload w
       left join (compute.placement t join compute.stage s on s.id = t.stage_run_id)
         on t.tenant_id = w.tenant_id and t.workload_id = w.id
         and ($3::text is null or t.stage_id = $3) and ($4::int is null or t.generation = $4)
       where w.tenant_id = $1 and w.id = $2
       order by s.position, t.generation`,
      [tenantId, workloadId, stageId, generation],
    );
    const [first] = rows;
    return {
      over: !first || isTerminal(first.workloadStatus),
      generations: rows.filter((row) => row.id !== null).map((row) => withoutRemovedLog(instance(Placement, row))),
    };
  }

  #read(placement: Placement, read: LogRead) {
    return readLog(this.#source.db, this.#source.compute.objects, placement, read);
  }

  #item(at: Standing, bytes: Buffer): WorkloadLogItem {
    const offset = at.bytes;
    at.bytes += bytes.length;
    return {
      ...place(at),
      offset,
      data: bytes.toString("base64"),
      text: at.holder.text(bytes),
      end: null,
      complete: false,
    };
  }

  #end(at: Standing, complete: boolean): WorkloadLogItem {
    const { placement } = at;
    const end: LogEnd = {
      totalBytes: placement.logBytes,
      sha256: placement.logTailLost ? null : placement.logSha256,
      truncated: placement.logTruncated,
      tailLost: placement.logTailLost,
    };
    return { ...place(at), offset: at.bytes, data: "", text: at.holder.end(), end, complete };
  }

  #page(turn: number, rows: WorkloadLogItem[], done: boolean, more: boolean): Page<WorkloadLogItem, number> {
    return { rows, after: turn + 1, done, more };
  }
}

/** A log whose time is over reads like one that nobody wrote to. */
function withoutRemovedLog(placement: Placement): Placement {
  return placement.logRemovedAt ? Object.assign(placement, { logBytes: 0, logSha256: null }) : placement;
}

function standing(placement: Placement, afterSeq: number): Standing {
  return { placement, bytes: 0, afterSeq, holder: new Utf8Holder() };
}

function place({ placement: { stageId, generation }, bytes }: Standing) {
  return { cursor: formatLogCursor({ stageId, generation, bytes }), stageId, generation };
}

/** Nothing more of this generation's log can come. */
function isWhole({ placement, bytes }: Standing): boolean {
  return placement.logComplete && bytes >= placement.logBytes;
}

/** Bytes as items of one size, however they were written: neither a message for each line nor one that is huge. */
function inItems(pieces: readonly LogPiece[]): Buffer[] {
  const all = Buffer.concat(pieces.map((piece) => piece.bytes));
  const items: Buffer[] = [];
  for (let at = 0; at < all.length; at += LIMITS.logChunkBytes) items.push(all.subarray(at, at + LIMITS.logChunkBytes));
  return items;
}

/** The last item of a workload that ended before anything ran. */
function nothing(): WorkloadLogItem {
  const end: LogEnd = { totalBytes: 0, sha256: null, truncated: false, tailLost: false };
  return { cursor: "", stageId: null, generation: null, offset: 0, data: "", text: "", end, complete: true };
}
