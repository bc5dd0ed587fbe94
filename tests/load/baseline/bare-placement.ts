import { newId } from "../../../infra/kernel/ids.ts";
import type { BareDatabase } from "./bare-database.ts";

const TAKE = `select s.id, s.tenant_id, s.workload_id, s.generation, s.fence from compute.stage s
  join compute.workload w on w.id = s.workload_id where s.id = $1 for update of s, w`;
const CAPACITY =
  "update compute.capacity set cpu_millis_used = cpu_millis_used + 100, memory_mb_used = memory_mb_used + 512, slots_used = slots_used + 1 where id = $1 and slots_used < slots";
const ACCOUNT =
  "update compute.account set held_micros = held_micros + $2 where id = $1 and balance_micros - held_micros >= $2";
const WORKLOAD =
  "update compute.workload set status = 'provisioning', revision = revision + 3, event_seq = event_seq + 3, held_micros = held_micros + $2, updated_at = $3 where id = $1 returning event_seq";
const STAGE =
  "update compute.stage set status = 'starting', generation = generation + 1, fence = fence + 1, last_tried_at = $2 where id = $1";
const PLACEMENT =
  "insert into compute.placement select * from jsonb_populate_record(null::compute.placement, $1::jsonb)";
const ATTEMPT = "insert into compute.attempt select * from jsonb_populate_record(null::compute.attempt, $1::jsonb)";
const EVENTS = `insert into compute.workload_event (id, tenant_id, workload_id, seq, type, payload, created_at)
  select e.id, $1, $2, e.seq, 'workload.planning', '{}', $3 from unnest($4::text[], $5::int[]) as e(id, seq)`;
const OUTBOX =
  "insert into infra.outbox (id, job, payload, due_at, created_at) values (gen_random_uuid()::text, 'compute.superviseBoot', $1, $2, $2)";
const SETTLE = "update compute.attempt set state = 'booting' where id = $1 and state = 'launching'";

interface Stage {
  id: string;
  tenant_id: string;
  workload_id: string;
  generation: number;
  fence: number;
}

/** Places one stage by the statements alone: nothing is decided, a placement that was made before is the pattern. */
export async function barePlacer(db: BareDatabase): Promise<(stageRunId: string) => Promise<void>> {
  const [pattern] = await db.sql<{ placement: object; attempt: { capacity_id: string } }>(
    `select to_jsonb(p) as placement, to_jsonb(a) as attempt
     from compute.placement p join compute.attempt a on a.placement_id = p.id limit 1`,
  );
  if (!pattern) throw new Error("no placement was made before");
  return async (stageRunId) => {
    const now = new Date();
    const orderId = newId("order", now);
    await db.transaction(async (client) => {
      const { rows } = await client.query<Stage>(TAKE, [stageRunId]);
      const stage = rows[0]!;
      const common = { tenant_id: stage.tenant_id, workload_id: stage.workload_id, fence: stage.fence + 1 };
      const placementId = newId("placement", now);
      await client.query(CAPACITY, [pattern.attempt.capacity_id]);
      await client.query(ACCOUNT, [stage.tenant_id, 1_000]);
      const placement = { ...pattern.placement, ...common, id: placementId, stage_run_id: stage.id, order_id: orderId };
      await client.query(PLACEMENT, [JSON.stringify(placement)]);
      const attempt = { ...pattern.attempt, ...common, id: orderId, placement_id: placementId, state: "launching" };
      await client.query(ATTEMPT, [JSON.stringify(attempt)]);
      await client.query(STAGE, [stage.id, now]);
      const { rows: moved } = await client.query<{ event_seq: number }>(WORKLOAD, [stage.workload_id, 1_000, now]);
      const last = Number(moved[0]!.event_seq);
      const ids = [newId("event", now), newId("event", now), newId("event", now)];
      await client.query(EVENTS, [stage.tenant_id, stage.workload_id, now, ids, [last - 2, last - 1, last]]);
      await client.query(OUTBOX, [JSON.stringify({ orderId }), now]);
    });
    await db.sql(SETTLE, [orderId]);
  };
}
