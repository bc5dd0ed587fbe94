import type { Database, Tx } from "../../infra/db/database.ts";
import { eachStep } from "../../infra/db/each-step.ts";
import { teamsInTurn } from "../../infra/db/teams-in-turn.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { loseGeneration } from "../../subgraphs/compute/lifecycle/finish.commands.ts";
import { ofTeam } from "../compute/team-bounds.ts";
import { ClockSteps } from "./clock-steps.ts";
import type { Reconciler } from "./schedule.ts";

/** Leases that one round looks at. */
const BATCH = 100;

const EVERY_MS = 2_000;
/** After a start hosts come back first: what they have spooled is worth more than a quick verdict. */
const START_GRACE_MS = 15_000;

export interface LeaseDeps {
  db: Database;
  clock: Clock;
  settings: { leaseMs: number };
}

/**
 * Ends generations whose host has not been heard for a whole lease. Leases are told by the wall clock: after that was
 * set, hosts have one lease to be heard again before any verdict.
 */
export function leaseReconciler({ db, clock, settings }: LeaseDeps): Reconciler {
  const startedAtMs = clock.monotonicMs();
  const steps = new ClockSteps(clock);
  return {
    name: "expired leases",
    everyMs: EVERY_MS,
    run: async () => {
      const steady = steps.sinceStepMs() > settings.leaseMs;
      const upMs = clock.monotonicMs() - startedAtMs;
      if (!steady || upMs < START_GRACE_MS) return;
      const now = clock.now();
      // A process that has not been up for a whole lease cannot know when the clock was set.
      const farthest = upMs > settings.leaseMs ? new Date(now.getTime() + 2 * settings.leaseMs) : null;
      await loseExpiredLeases(db, now, farthest);
    },
  };
}

/**
 * Ends generations whose lease is over. The host kills its guest before the lease ends, so an expired lease is proof
 * that nothing of the generation runs. So is one that ends beyond `farthest`: nobody was given that much ahead, so it was
 * given before the wall clock was set back, and the host has not been heard since. Returns how many were ended.
 */
export async function loseExpiredLeases(db: Database, now: Date, farthest: Date | null = null): Promise<number> {
  const expired = await db.sql<{ id: string; tenant_id: string }>(
    `select id, tenant_id from compute.placement where state in ('provisioning', 'running') and ${EXPIRED}
     order by ${teamsInTurn("tenant_id", "lease_expires_at, id")} limit ${BATCH}`,
    [now, farthest],
  );
  const lose = ({ id, tenant_id }: (typeof expired)[number]) =>
    db.command((tx) => loseIfStillExpired(tx, id, now, farthest), ofTeam(tenant_id));
  await eachStep(expired.map((placement) => () => lose(placement)));
  return expired.length;
}

/** `$1` now, `$2` the end that no lease given now can have; null when it is not known. */
const EXPIRED = "(lease_expires_at < $1::timestamptz or lease_expires_at > $2::timestamptz)";

async function loseIfStillExpired(tx: Tx, placementId: string, now: Date, farthest: Date | null): Promise<void> {
  const [row] = await tx.sql<{ workload_id: string }>("select workload_id from compute.placement where id = $1", [
    placementId,
  ]);
  if (!row) return;
  await tx.sql("select 1 from compute.workload where id = $1 for update", [row.workload_id]);
  // Read again under the lock: a heartbeat may have come in between.
  const [still] = await tx.sql(
    `select 1 from compute.placement where id = $3 and state in ('provisioning', 'running') and ${EXPIRED} for update`,
    [now, farthest, placementId],
  );
  if (still) await loseGeneration(tx, { placementId, trigger: "host_lost", now });
}
