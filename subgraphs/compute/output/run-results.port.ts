import type { Queryer } from "../../../infra/db/database.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { Placement } from "../placement/placement.entity.ts";
import type { RunFacts, RunName, RunResultsPort, SinkOutput } from "../published.ts";
import { Stage } from "../stage/stage.entity.ts";
import { findWorkload } from "../workload/workload.reads.ts";
import { WORKLOAD } from "../workload/workload.refusals.ts";
import { appendEvent } from "../workload/workload.transitions.ts";
import { Output } from "./output.entity.ts";

/** What runs leave behind, as compute has it. */
export const runResults: RunResultsPort = {
  async sinkOutputs(q, { tenantId, workloadId, stageId, generation }) {
    const stage = await stageOf(q, { tenantId, workloadId, stageId });
    if (!stage?.spec.sinks) return [];
    const outputs = await q.rows(
      Output,
      "where t.tenant_id = $1 and t.workload_id = $2 and t.stage_id = $3 and t.generation = $4 order by t.name",
      [tenantId, workloadId, stageId, generation],
    );
    return outputs.flatMap((output) => withSink(output, stage) ?? []);
  },

  async sinkOutput(q, { tenantId, workloadId, name, stageId }) {
    if (!(await findWorkload(q, tenantId, workloadId))) throw new Refused(COMMON.not_found);
    const output = await savedOutput(q, { tenantId, workloadId, name, stageId });
    const stage = await stageOf(q, { tenantId, workloadId, stageId: output.stageId });
    const found = stage && withSink(output, stage);
    if (!found) throw new Refused(WORKLOAD.output_has_no_sink, { field: "/name" });
    if (output.removedAt) throw new Refused(WORKLOAD.output_gone, { field: "/name" });
    return found;
  },

  facts: runFacts,

  async forgotten(q, workloadIds) {
    const rows = await q.sql<{ id: string }>(
      "select id from compute.workload where id = any($1) and placements_forgotten_at is not null",
      [workloadIds],
    );
    return rows.map(({ id }) => id);
  },

  async lock(tx, { tenantId, workloadId }) {
    const locked = await tx.sql("select 1 from compute.workload where tenant_id = $1 and id = $2 for update", [
      tenantId,
      workloadId,
    ]);
    if (locked.length === 0) throw new Refused(COMMON.not_found);
  },

  appendEvent: (tx, { workloadId, type, payload, now }) => appendEvent(tx, workloadId, type, payload, now),
};

function stageOf(q: Queryer, { tenantId, workloadId, stageId }: Omit<RunName, "generation">): Promise<Stage | null> {
  return q.row(Stage, "where t.tenant_id = $1 and t.workload_id = $2 and t.stage_id = $3", [
    tenantId,
    workloadId,
    stageId,
  ]);
}

/** The output with its table; null when it was declared without one. */
function withSink(output: Output, { spec }: Stage): SinkOutput | null {
  const { stageId, generation, name, sha256, bytes, isTar } = output;
  const sink = spec.sinks?.[name];
  return sink ? { stageId, generation, name, path: spec.outputs?.[name] ?? name, sha256, bytes, isTar, ...sink } : null;
}

/** Of the generation that completed its stage: what another one saved never became a result. */
async function savedOutput(
  q: Queryer,
  {
    tenantId,
    workloadId,
    name,
    stageId,
  }: { tenantId: string; workloadId: string; name: string; stageId: string | null },
): Promise<Output> {
  const saved = await q.rows(
    Output,
    `join compute.stage s on s.workload_id = t.workload_id and s.stage_id = t.stage_id and s.generation = t.generation
        and s.status = 'completed'
      where t.tenant_id = $1 and t.workload_id = $2 order by s.position`,
    [tenantId, workloadId],
  );
  // Compared here: not every text may be asked of the database.
  const named = saved.filter((o) => o.name === name && (stageId === null || o.stageId === stageId));
  const [output] = named;
  if (!output) throw new Refused(WORKLOAD.output_not_found, { field: "/name" });
  if (named.length > 1) {
    const stages = named.map((o) => o.stageId);
    throw new Refused(WORKLOAD.ambiguous_output, { field: "/stage", extra: { stages } });
  }
  return output;
}

async function runFacts(q: Queryer, run: RunName): Promise<RunFacts | null> {
  const { tenantId, workloadId, stageId, generation } = run;
  const workload = await findWorkload(q, tenantId, workloadId);
  const placement = await q.row(
    Placement,
    "where t.tenant_id = $1 and t.workload_id = $2 and t.stage_id = $3 and t.generation = $4",
    [tenantId, workloadId, stageId, generation],
  );
  if (!workload || !placement) return null;
  return {
    status: workload.status,
    gpu: placement.accelerator,
    gpuCount: placement.gpuCount,
    region: placement.region,
    chargedMicros: placement.chargedMicros,
    startedAt: placement.runningAt,
    endedAt: placement.endedAt,
    sweepId: workload.payload.sweep_id ?? null,
    final: workload.settledAt !== null,
  };
}
