import type { RunnerRecord } from "../../../infra/runner/protocol.ts";
import { applyLogTruncated, type RecordContext } from "../lifecycle/record-handlers.ts";
import { topics } from "../topics.ts";
import { addRunLinks } from "./add-run-links.ts";

type LogRecord = Extract<RunnerRecord, { type: "log" }>;

/**
 * Appends log bytes. Chunks are numbered over the whole workload under its row's lock, so a reader that goes by the
 * number never misses one that commits late. Bytes that overlap what is there are skipped: offsets, not records, are
 * the truth of a log. Bytes past the committed limit are dropped and said to be; bytes behind a gap are lost.
 */
export async function applyLog(context: RecordContext, records: readonly LogRecord[]): Promise<void> {
  const { tx, workload, placement, now } = context;
  const offsets: number[] = [];
  const pieces: Buffer[] = [];
  for (const record of records) {
    if (record.offset > placement.logBytes) await loseTail(context);
    const piece = await newBytes(context, record);
    if (piece.length === 0) continue;
    offsets.push(placement.logBytes);
    pieces.push(piece);
    placement.logBytes += piece.length;
  }
  if (pieces.length === 0) return;
  const bytes = Buffer.concat(pieces);
  await addRunLinks(context, bytes);
  await tx.sql(
    `with numbered as (
       update compute.workload set log_seq = log_seq + $2 where id = $1 returning log_seq - $2 as last_seq),
     measured as (update compute.placement set log_bytes = $10 where id = $4)
     insert into compute.log_chunk (workload_id, seq, tenant_id, placement_id, stage_id, generation, byte_offset, bytes, created_at)
     select $1, n.last_seq + c.i::int, $3, $4, $5, $6, c.byte_offset,
       substring($8::bytea from (c.byte_offset - $11 + 1)::int for c.length), $9
     from numbered n, unnest($7::bigint[], $12::int[]) with ordinality as c(byte_offset, length, i)`,
    [
      workload.id,
      pieces.length,
      workload.tenantId,
      placement.id,
      placement.stageId,
      placement.generation,
      offsets,
      bytes, // one value travels as it is; in an array each byte would be two characters
      now,
      placement.logBytes,
      offsets[0],
      pieces.map((piece) => piece.length),
    ],
  );
  tx.wake(topics.log(workload.id));
}

/** What a record adds to the log: not what is there, nor what lies behind a gap or past the limit. */
async function newBytes(context: RecordContext, { offset, data }: LogRecord): Promise<Buffer> {
  const { logBytes } = context.placement;
  if (offset > logBytes) return Buffer.alloc(0);
  const bytes = Buffer.from(data, "base64").subarray(logBytes - offset);
  const room = context.settings.logCommittedBytes - logBytes;
  if (bytes.length > room) await applyLogTruncated(context, { offset: logBytes + Math.max(room, 0) });
  return bytes.subarray(0, Math.max(room, 0));
}

/** Bytes are missing for good. A log that was cut has no place for them anyway. */
async function loseTail({ tx, placement }: RecordContext): Promise<void> {
  if (placement.logTailLost || placement.logTruncated) return;
  placement.logTailLost = true;
  await tx.sql("update compute.placement set log_tail_lost = true where id = $1", [placement.id]);
}
