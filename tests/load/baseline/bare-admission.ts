import type { FastifyInstance } from "fastify";
import { newId } from "../../../infra/kernel/ids.ts";
import type { WorkloadRequest } from "../../../subgraphs/compute/workload/judge.ts";
import type { BareDatabase } from "./bare-database.ts";

const IDEMPOTENCY =
  "insert into infra.idempotency_key (id, tenant_id, fingerprint, object_id, created_at) values ($1, $2, $3, $4, $5) on conflict (id) do nothing returning id";
const WORKLOAD = `insert into compute.workload (id, tenant_id, owner_user_id, key_id, name, status, revision, payload, max_cost_micros,
  complete_by, spend_micros, held_micros, event_seq, log_seq, created_at, updated_at)
  values ($1, $2, null, $3, '', 'accepted', 1, $4, null, null, 0, 0, 1, 0, $5, $5)`;
const STAGE = `insert into compute.stage (id, tenant_id, workload_id, stage_id, position, status, spec, continuity_mode, generation, fence,
  completed_units, total_units, next_try_at, failed_offer_ids, recoveries, created_at)
  values ($1, $2, $3, 'main', 0, 'placing', $4, 'checkpointed', 0, 0, 0, 0, $5, '{}', 0, $5)`;
const EVENT =
  "insert into compute.workload_event (id, tenant_id, workload_id, seq, type, payload, created_at) values ($1, $2, $3, 1, 'workload.accepted', $4, $5)";
const OUTBOX =
  "insert into infra.outbox (id, job, payload, due_at, created_at) values (gen_random_uuid()::text, 'compute.placeStage', $1, $2, $2)";
const ACCOUNT =
  "update compute.account set active_runs = active_runs + 1 where id = $1 and balance_micros - held_micros >= 1 returning id";

/** The rows of an admission in one transaction, the hottest last, and nothing that looks at the request. */
export async function admitBarely(
  db: BareDatabase,
  tenantId: string,
  key: string,
  request: WorkloadRequest,
): Promise<string> {
  const now = new Date();
  const id = newId("workload", now);
  const stageRunId = newId("stageRun", now);
  const payload = JSON.stringify(request.payload);
  await db.transaction(async (client) => {
    await client.query(IDEMPOTENCY, [`${tenantId} ${key}`, tenantId, payload, id, now]);
    await client.query(WORKLOAD, [id, tenantId, "key_bench", payload, now]);
    await client.query(STAGE, [stageRunId, tenantId, id, payload, now]);
    await client.query(EVENT, [newId("event", now), tenantId, id, '{"status":"accepted"}', now]);
    await client.query(OUTBOX, [JSON.stringify({ stageRunId }), now]);
    const { rowCount } = await client.query(ACCOUNT, [tenantId]);
    if (rowCount !== 1) throw new Error("the account does not pay");
  });
  return id;
}

/** `POST /v1/workloads` over it. */
export function admissionRoute(app: FastifyInstance, db: BareDatabase): void {
  app.post("/v1/workloads", async (request, reply) => {
    const payload = request.body as WorkloadRequest["payload"];
    const id = await admitBarely(db, request.caller!.tenantId, String(request.headers["idempotency-key"]), { payload });
    return reply.code(202).send({ id, workload_id: id, status: "accepted", revision: 1 });
  });
}
