import type { FastifyInstance } from "fastify";
import { toUsd } from "../../../infra/kernel/micros.ts";
import { Workload } from "../../../subgraphs/compute/workload/workload.entity.ts";
import type { BareDatabase } from "./bare-database.ts";

const BY_ID = "where t.tenant_id = $1 and t.id = $2";
const BY_IDS = "where t.tenant_id = $1 and t.id = any($2)";
const NEWEST = `where t.tenant_id = $1 and ($2::text is null or t.owner_user_id = $2) and ($3::text[] is null or t.status = any($3))
           and ($4::timestamptz is null or (t.created_at, t.id) < ($4, $5))
         order by t.created_at desc, t.id desc limit $6 offset $7`;

/** What the entity join answers, written by hand: compute's rows, then rl's question for each. */
export function joinedRoutes(app: FastifyInstance, db: BareDatabase): void {
  const withEvents = async (tenantId: string, workload: Workload) => {
    if (!(await db.row(Workload, BY_ID, [tenantId, workload.id]))) throw new Error("the workload is gone");
    const { id, name, status, spendMicros, createdAt } = workload;
    return { id, name, status, spendUsd: toUsd(spendMicros), createdAt, rlEvents: { nextCursor: "", hasMore: false } };
  };
  app.get("/joined/:id", async (request, reply) => {
    const { tenantId } = request.caller!;
    const { id } = request.params as { id: string };
    const workload = await db.row(Workload, BY_IDS, [tenantId, [id]]);
    return workload ? withEvents(tenantId, workload) : reply.code(404).send({ error: "not_found" });
  });
  app.get("/joined", async (request) => {
    const { tenantId } = request.caller!;
    const workloads = await db.rows(Workload, NEWEST, [tenantId, null, null, null, null, 11, 0]);
    return Promise.all(workloads.slice(0, 10).map((workload) => withEvents(tenantId, workload)));
  });
}
