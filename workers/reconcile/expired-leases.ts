import type { Database, Tx } from "../../infra/db/database.ts";
import { eachStep } from "../../infra/db/each-step.ts";
import { forJob } from "../../infra/db/job-bounds.ts";
import { teamsInTurn } from "../../infra/db/teams-in-turn.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { loseGeneration } from "../../subgraphs/compute/lifecycle/finish.commands.ts";
import { ClockSteps } from "./clock-steps.ts";
import { type Lease, LeasesAhead } from "./leases-ahead.ts";
import type { Reconciler } from "./schedule.ts";

/** Generations that one round ends. */
const BATCH = 100;
/** Leases beyond what can be given now that one round looks at: all there are after the clock was set back. */
const AHEAD_BATCH = 10_000;

const EVERY_MS = 2_000;

export interface LeaseDeps {
  db: Database;
  clock: Clock;
  settings: { leaseMs: number };
}

/**
 * Ends generations whose host has not been heard for a whole lease. Leases are told by the wall clock of whoever gave
 * them, which may be behind this one by `LIMITS.clockSkewMs`: only a lease that has been over for that long is over. After
 * the clock was set, hosts have one lease to be heard again before any verdict; after a start as well, for this process
 * cannot know whether it was set before.
 */
export function leaseReconciler({ db, clock, settings: { leaseMs } }: LeaseDeps): Reconciler {
  const steps = new ClockSteps(clock);
  const leasesAhead = new LeasesAhead();
  return {
    name: "expired leases",
    everyMs: EVERY_MS,
    run: async () => {
      const isSteady = steps.sinceStepMs() > leaseMs;
      const now = clock.now();
      const ahead = await leasesBeyond(db, new Date(now.getTime() + leaseMs + LIMITS.clockSkewMs));
      const unchanged = leasesAhead.unchanged(ahead, leaseMs, clock.monotonicMs());
      await eachStep([
        () => loseGenerations(db, unchanged.slice(0, BATCH), now),
        async () => {
          if (isSteady) await loseExpiredLeases(db, new Date(now.getTime() - LIMITS.clockSkewMs), now);
        },
      ]);
    },
  };
}

/**
 * Ends generations whose lease was over before `overBefore`. The host kills its guest before the lease ends, so that is
 * proof that nothing of the generation runs.
 */
export async function loseExpiredLeases(db: Database, overBefore: Date, now = overBefore): Promise<void> {
  await loseGenerations(db, await leasesThat(db, "lease_expires_at < $1", overBefore, BATCH), now);
}

function leasesBeyond(db: Database, farthest: Date): Promise<Lease[]> {
  return leasesThat(db, "lease_expires_at > $1", farthest, AHEAD_BATCH);
}

function leasesThat(db: Database, condition: string, at: Date, limit: number): Promise<Lease[]> {
  return db.sql<Lease>(
    `select id, tenant_id as "tenantId", lease_expires_at as "expiresAt" from compute.placement
     where state in ('provisioning', 'running') and ${condition}
     order by ${teamsInTurn("tenant_id", "lease_expires_at, id")} limit ${limit}`,
    [at],
  );
}

async function loseGenerations(db: Database, leases: readonly Lease[], now: Date): Promise<void> {
  const loseOf = (lease: Lease) => () => db.command((tx) => loseUnlessHeard(tx, lease, now), forJob(lease.tenantId));
  await eachStep(leases.map(loseOf));
}

async function loseUnlessHeard(tx: Tx, { id: placementId, expiresAt }: Lease, now: Date): Promise<void> {
  const [row] = await tx.sql<{ workload_id: string }>("select workload_id from compute.placement where id = $1", [
    placementId,
  ]);
  if (!row) return;
  await tx.sql("select 1 from compute.workload where id = $1 for update", [row.workload_id]);
  // Read again under the lock: a heartbeat, which writes another end, may have come in between.
  const [still] = await tx.sql(
    `select 1 from compute.placement
     where id = $1 and state in ('provisioning', 'running') and lease_expires_at = $2 for update`,
    [placementId, expiresAt],
  );
  if (still) await loseGeneration(tx, { placementId, trigger: "host_lost", now });
}
