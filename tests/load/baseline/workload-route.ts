import type { FastifyInstance } from "fastify";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { toUsd } from "../../../infra/kernel/micros.ts";
import { Manifest } from "../../../subgraphs/compute/checkpoint/manifest.entity.ts";
import { meterOf, postedFees } from "../../../subgraphs/compute/ledger/meter.ts";
import { unitFigures } from "../../../subgraphs/compute/output/unit-figures.ts";
import { Placement } from "../../../subgraphs/compute/placement/placement.entity.ts";
import { Stage } from "../../../subgraphs/compute/stage/stage.entity.ts";
import { Workload } from "../../../subgraphs/compute/workload/workload.entity.ts";
import type { BareDatabase } from "./bare-database.ts";

const BY_IDS = "where t.tenant_id = $1 and t.id = any($2)";
const HANGING = "where t.tenant_id = $1 and t.workload_id = any($2)";

/** `GET /v1/workloads/{id}` as somebody would write it who needs this route and no other. */
export function workloadRoute(app: FastifyInstance, db: BareDatabase): void {
  app.get("/v1/workloads/:id", async (request, reply) => {
    reply.header("cache-control", "no-store").header("x-request-id", request.id);
    const caller = request.caller!;
    const { id } = request.params as { id: string };
    if (!caller.scopes.includes("workloads:read")) return reply.code(403).send({ error: "insufficient_scope" });
    const workload = isId("workload", id) ? await db.row(Workload, BY_IDS, [caller.tenantId, [id]]) : null;
    return workload ? documentOf(db, caller, workload) : reply.code(404).send({ error: "not_found" });
  });
}

async function documentOf(db: BareDatabase, { tenantId }: Actor, workload: Workload) {
  const hanging = [tenantId, [workload.id]];
  const [manifests, stages, placements, fees, [units]] = await Promise.all([
    db.rows(Manifest, `${HANGING} order by t.created_at, t.generation, t.sequence`, hanging),
    db.rows(Stage, `${HANGING} order by t.position`, hanging),
    db.rows(Placement, `${HANGING} order by t.stage_id collate "C", t.generation`, hanging),
    postedFees(db, tenantId, [workload]),
    unitFigures(db, tenantId, [workload.id]),
  ]);
  if (manifests.length + placements.length + units!.units > 0) throw new Error("the bench's workloads did not run");
  const meter = meterOf(workload.spendMicros, fees.get(workload.id) ?? 0n, placements, new Date());
  return {
    id: workload.id,
    tenant_id: workload.tenantId,
    owner_user_id: workload.ownerUserId,
    name: workload.name,
    status: workload.status,
    revision: workload.revision,
    spend_usd: toUsd(workload.spendMicros),
    created_at: workload.createdAt,
    updated_at: workload.updatedAt,
    payload: workload.payload,
    route: null,
    latest_checkpoint: null,
    links: [],
    unit_metrics: null,
    stages: stages.map((stage) => ({
      id: stage.stageId,
      status: stage.status,
      continuity_mode: stage.continuityMode,
      completed_units: stage.completedUnits,
      total_units: stage.totalUnits,
      last_loss: stage.lastLoss,
      metric_rate: stage.metricRate,
      metric_step: stage.metricStep,
      latest_manifest: null,
    })),
    meter: {
      settled_usd: toUsd(meter.settledUsd),
      accruing_usd: toUsd(meter.accruingUsd),
      accruing_rate_usd_hour: toUsd(meter.accruingRateUsdHour),
      total_now_usd: toUsd(meter.totalNowUsd),
      as_of: meter.asOf,
      compute_settled_usd: toUsd(meter.computeSettledUsd),
      platform_fee_settled_usd: toUsd(meter.platformFeeSettledUsd),
      subscription_settled_usd: toUsd(meter.subscriptionSettledUsd),
      compute_accruing_usd: toUsd(meter.computeAccruingUsd),
      platform_fee_accruing_usd: toUsd(meter.platformFeeAccruingUsd),
    },
  };
}
