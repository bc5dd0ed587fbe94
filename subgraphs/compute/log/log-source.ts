import type { Queryer } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { ComputeServices } from "../compute-context.ts";
import type { Placement } from "../placement/placement.entity.ts";

/** What of a placement tells where its log lies. */
export type LoggedPlacement = Pick<
  Placement,
  | "id"
  | "tenantId"
  | "workloadId"
  | "stageId"
  | "generation"
  | "logBytes"
  | "logSha256"
  | "logCommittedAt"
  | "logComplete"
>;

/** A piece of a generation's log. */
export interface LogPiece {
  /** Where it starts in the generation's log. */
  offset: number;
  bytes: Buffer;
}

/** What one read looks for. */
export interface LogRead {
  /** Bytes of the generation's log that are known. */
  from: number;
  /** Number of the last chunk that was read, so that the next look does not begin at the first; 0 for none. */
  afterSeq: number;
}

/** Bytes that one read returns at most, give or take a chunk: what a slow reader's page may cost. */
const PAGE_BYTES = 1024 * 1024;
const PAGE_CHUNKS = 512;

export interface LogPage {
  /** They follow each other without gap; none means that nothing is there yet. */
  pieces: LogPiece[];
  /** For the next read. */
  afterSeq: number;
  /** The page is full: there is more at once. */
  more: boolean;
}

/**
 * The next bytes of a generation's log, from the chunks as long as they are kept, then from the committed object.
 */
export async function readLog(
  q: Queryer,
  objects: ComputeServices["objects"],
  placement: LoggedPlacement,
  read: LogRead,
): Promise<LogPage> {
  const rows = await q.sql<{ seq: number; byte_offset: bigint; bytes: Buffer }>(
    `select seq, byte_offset, bytes from (
       select c.*, sum(octet_length(bytes)) over (order by seq) - octet_length(bytes) as bytes_before from (
         select seq, byte_offset, bytes from compute.log_chunk
         where tenant_id = $1 and workload_id = $2 and seq > $3 and placement_id = $4
           and byte_offset + octet_length(bytes) > $5
         order by seq limit $6) c) page
     where bytes_before < $7 order by seq`,
    [placement.tenantId, placement.workloadId, read.afterSeq, placement.id, read.from, PAGE_CHUNKS, PAGE_BYTES],
  );
  const pieces = rows.map((row) => ({ offset: Number(row.byte_offset), bytes: row.bytes }));
  const first = pieces[0];
  if (first && first.offset <= read.from) {
    const known = read.from - first.offset;
    pieces[0] = { offset: read.from, bytes: first.bytes.subarray(known) };
    const more = rows.length === PAGE_CHUNKS || size(pieces) >= PAGE_BYTES - known;
    return { pieces, afterSeq: rows.at(-1)!.seq, more };
  }
  const { afterSeq } = read;
  if (read.from >= placement.logBytes || !placement.logCommittedAt) return { pieces: [], afterSeq, more: false };
  const rest = await readObject(objects, placement, read.from);
  return { pieces: rest, afterSeq, more: read.from + size(rest) < placement.logBytes };
}

function size(pieces: readonly LogPiece[]): number {
  return pieces.reduce((sum, piece) => sum + piece.bytes.length, 0);
}

async function readObject(
  objects: ComputeServices["objects"],
  placement: LoggedPlacement,
  from: number,
): Promise<LogPiece[]> {
  const { logSha256: sha256 } = placement;
  const opened = sha256 ? await objects.open(sha256, { start: from, end: from + PAGE_BYTES - 1 }) : null;
  if (!opened) throw new Error(`the committed log of ${placement.id} is not in the object store`);
  const pieces: LogPiece[] = [];
  let offset = from;
  for await (const bytes of opened.stream) {
    pieces.push({ offset, bytes: bytes as Buffer });
    offset += (bytes as Buffer).length;
  }
  return pieces;
}

/**
 * Everything that is kept of a generation's log, cut at `maxBytes`; the gateway's download reads it. Ends where the
 * log ends now.
 */
export async function* logBytes(
  q: Queryer,
  objects: ComputeServices["objects"],
  placement: LoggedPlacement,
  maxBytes: number = LIMITS.logCommittedBytes,
): AsyncGenerator<Buffer> {
  let from = 0;
  let afterSeq = 0;
  while (from < maxBytes) {
    const read = await readLog(q, objects, placement, { from, afterSeq });
    if (read.pieces.length === 0) return;
    afterSeq = read.afterSeq;
    for (const { bytes } of read.pieces) {
      yield bytes.subarray(0, maxBytes - from);
      from += bytes.length;
      if (from >= maxBytes) return;
    }
  }
}
