import { Field, Int, ObjectType } from "type-graphql";
import type { Queryer } from "../../../infra/db/database.ts";
import { decodeCursor, encodeCursor } from "../../../infra/kernel/cursor.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { HELD_BYTES, Utf8Holder } from "./utf8-holder.ts";

@ObjectType({ description: "A piece of live log." })
export class LiveLogChunk {
  @Field(() => Int, { description: "Its number within the workload; rises over all generations.", simple: true })
  id!: number;
  @Field(() => String, { description: "The stage.", simple: true }) stageId!: string;
  @Field(() => Int, { description: "The generation.", simple: true }) generation!: number;
  @Field(() => String, {
    description: "Its text; a character that is cut belongs to the chunk that ends it.",
    simple: true,
  })
  text!: string;
}

@ObjectType({ description: "A page of live log, for readers that ask again and again." })
export class LiveLog {
  @Field(() => [LiveLogChunk], { description: "At most 16 chunks.", simple: true }) chunks!: LiveLogChunk[];
  @Field(() => String, { description: "Give it as `after` for the next page.", simple: true }) nextCursor!: string;
  @Field(() => Boolean, { description: "A generation wrote more than live log keeps.", simple: true })
  truncated!: boolean;
}

interface Row {
  workload_id: string;
  seq: number;
  placement_id: string;
  stage_id: string;
  generation: number;
  /** Bytes of the chunk within the capture; of chunks before the cursor only the last few. */
  bytes: Buffer;
}

const LIST = "liveLog";

/** The chunk's number that a cursor stands for; an empty one is the beginning. */
export function liveLogPosition(cursor: string | null | undefined): number {
  if (!cursor) return 0;
  const [seq] = decodeCursor(LIST, cursor, 1);
  if (typeof seq !== "number" || !Number.isInteger(seq) || seq < 0 || seq >= 2 ** 31)
    throw new Refused(COMMON.invalid_cursor, { field: "/after" });
  return seq;
}

export interface LiveLogRead {
  tenantId: string;
  ids: readonly string[];
  /** Number of the last chunk that is known. */
  after: number;
  captureBytes: number;
}

/**
 * The next page of live log of each workload, in the order of `ids`. Of every generation only the first
 * `captureBytes` are shown.
 */
export async function liveLogPages(
  q: Queryer,
  { tenantId, ids, after, captureBytes }: LiveLogRead,
): Promise<Omit<LiveLog, "truncated">[]> {
  const rows = await q.sql<Row>(
    `select c.* from unnest($1::text[]) w(id) cross join lateral (
       (select t.workload_id, t.seq, t.placement_id, t.stage_id, t.generation,
               substring(t.bytes from greatest(1, octet_length(t.bytes) - ${HELD_BYTES - 1})) as bytes
        from compute.log_chunk t where t.tenant_id = $4 and t.workload_id = w.id and t.seq <= $2 and t.byte_offset < $3
        order by t.seq desc limit ${HELD_BYTES})
       union all
       (select t.workload_id, t.seq, t.placement_id, t.stage_id, t.generation,
               substring(t.bytes for least(octet_length(t.bytes), $3 - t.byte_offset)::int) as bytes
        from compute.log_chunk t where t.tenant_id = $4 and t.workload_id = w.id and t.seq > $2 and t.byte_offset < $3
        order by t.seq limit ${LIMITS.liveLogPageChunks})) c
     order by c.workload_id, c.seq`,
    [ids, after, captureBytes, tenantId],
  );
  return ids.map((id) => {
    const own = rows.filter((row) => row.workload_id === id);
    const chunks = decode(own, after);
    return { chunks, nextCursor: encodeCursor(LIST, [chunks.at(-1)?.id ?? after]) };
  });
}

function decode(rows: readonly Row[], after: number): LiveLogChunk[] {
  let placement: string | null = null;
  let holder = new Utf8Holder();
  const chunks: LiveLogChunk[] = [];
  for (const row of rows) {
    if (row.placement_id !== placement) holder = new Utf8Holder();
    placement = row.placement_id;
    const text = holder.text(row.bytes);
    if (row.seq > after) chunks.push({ id: row.seq, stageId: row.stage_id, generation: row.generation, text });
  }
  return chunks;
}
