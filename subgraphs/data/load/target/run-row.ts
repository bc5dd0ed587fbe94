import type pg from "pg";
import type { RunFacts } from "../../../compute/published.ts";
import { LoadFailure } from "../load-failure.ts";
import { lockInTarget } from "./target-table.ts";

/** A generation of a stage, in the target's words. */
export interface TargetRun {
  workloadId: string;
  stageId: string;
  generation: number;
}

const CREATE = `create table if not exists public.nodus_runs (
  workload_id text not null, stage text not null, generation integer not null, status text not null, gpu text,
  gpu_count integer, region text, cost_usd numeric(20, 6), started_at timestamptz, ended_at timestamptz, sweep_id text,
  loaded_at timestamptz not null, primary key (workload_id, stage, generation))`;

async function runsExist(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ there: boolean }>(
    `select exists (select 1 from pg_class where relnamespace = 'public'::regnamespace and relname = 'nodus_runs') as there`,
  );
  return rows[0]!.there;
}

/** Refuses rows of a generation after those of a later one were loaded. */
export async function requireLatest(client: pg.Client, { workloadId, stageId, generation }: TargetRun): Promise<void> {
  if (!(await runsExist(client))) return;
  const { rows } = await client.query(
    "select 1 from public.nodus_runs where workload_id = $1 and stage = $2 and generation > $3 limit 1",
    [workloadId, stageId, generation],
  );
  if (rows.length > 0) throw new LoadFailure("superseded", "A later generation has been loaded.");
}

/** Writes what is known of the run whose rows are being loaded. */
export async function writeRun(
  client: pg.Client,
  { workloadId, stageId, generation }: TargetRun,
  facts: RunFacts,
  loadedAt: Date,
): Promise<void> {
  if (!(await runsExist(client))) {
    await lockInTarget(client, "table/nodus_runs");
    await client.query(CREATE);
  }
  await client.query(
    `insert into public.nodus_runs as r (workload_id, stage, generation, status, gpu, gpu_count, region, cost_usd,
       started_at, ended_at, sweep_id, loaded_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     on conflict (workload_id, stage, generation) do update set status = excluded.status, gpu = excluded.gpu,
       gpu_count = excluded.gpu_count, region = excluded.region, cost_usd = excluded.cost_usd,
       started_at = excluded.started_at, ended_at = excluded.ended_at, sweep_id = excluded.sweep_id,
       loaded_at = excluded.loaded_at`,
    [workloadId, stageId, generation, ...valuesOf(facts), loadedAt],
  );
}

/** Brings the figures of a run whose rows are there up to date. */
export async function updateRun(client: pg.Client, run: TargetRun, facts: RunFacts): Promise<void> {
  await client.query(
    `update public.nodus_runs set status = $4, gpu = $5, gpu_count = $6, region = $7, cost_usd = $8, started_at = $9,
       ended_at = $10, sweep_id = $11 where workload_id = $1 and stage = $2 and generation = $3`,
    [run.workloadId, run.stageId, run.generation, ...valuesOf(facts)],
  );
}

function valuesOf(facts: RunFacts): unknown[] {
  const { status, gpu, gpuCount, region, chargedMicros, startedAt, endedAt, sweepId } = facts;
  return [status, gpu, gpuCount, region, dollars(chargedMicros), startedAt, endedAt, sweepId];
}

/** Exact, as a numeric is: micro-dollars are its sixth decimal. */
function dollars(micros: bigint | null): string | null {
  return micros === null ? null : `${micros / 1_000_000n}.${String(micros % 1_000_000n).padStart(6, "0")}`;
}
