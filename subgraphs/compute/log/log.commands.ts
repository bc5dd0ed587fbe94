import type { RunnerRecord } from "../../../infra/runner/protocol.ts";
import type { RecordContext } from "../lifecycle/record-handlers.ts";
import { topics } from "../topics.ts";

type LogRecord = Extract<RunnerRecord, { type: "log" }>;

/**
 * Appends log bytes. Chunks are numbered over the whole workload under its row's lock, so a reader that goes by the
 * number never misses one that commits late. Bytes that overlap what is there are skipped: offsets, not records, are
 * the truth of a log.
 */
export async function applyLog(context: RecordContext, records: readonly LogRecord[]): Promise<void> {
  const { tx, workload, placement, now } = context;
  const offsets: number[] = [];
  const pieces: Buffer[] = [];
  for (const record of records) {
    const bytes = Buffer.from(record.data, "base64");
    const known = Math.max(0, placement.logBytes - record.offset);
    if (record.offset > placement.logBytes)
      throw new Error(`log bytes ${placement.logBytes} to ${record.offset} of ${placement.id} are missing`);
    if (known >= bytes.length) continue;
    offsets.push(placement.logBytes);
    pieces.push(bytes.subarray(known));
    placement.logBytes += bytes.length - known;
  }
  if (pieces.length === 0) return;
  const [row] = await tx.sql<{ log_seq: number }>(
    "update compute.workload set log_seq = log_seq + $2 where id = $1 returning log_seq",
    [workload.id, pieces.length],
  );
  const firstSeq = row!.log_seq - pieces.length + 1;
  await tx.sql(
    `insert into compute.log_chunk (workload_id, seq, tenant_id, placement_id, stage_id, generation, byte_offset, bytes, created_at)
     select $1, $2 + c.i - 1, $3, $4, $5, $6, c.byte_offset, c.bytes, $9
     from unnest($7::bigint[], $8::bytea[]) with ordinality as c(byte_offset, bytes, i)`,
    [
      workload.id,
      firstSeq,
      workload.tenantId,
      placement.id,
      placement.stageId,
      placement.generation,
      offsets,
      pieces,
      now,
    ],
  );
  await tx.sql("update compute.placement set log_bytes = $2 where id = $1", [placement.id, placement.logBytes]);
  tx.wake(topics.log(workload.id));
}
