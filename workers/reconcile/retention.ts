import type { Database } from "../../infra/db/database.ts";
import { eachStep } from "../../infra/db/each-step.ts";
import { type KeyedTables, sweepIdempotencyKeys } from "../../infra/db/sweep-idempotency.ts";
import { sweepOutbox } from "../../infra/db/sweep-outbox.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import type { Logger } from "../../infra/telemetry/logger.ts";
import { collectResultBytes } from "../../subgraphs/compute/output/collect-result-bytes.ts";
import { expireResults } from "../../subgraphs/compute/output/expire-results.ts";
import { forgetPlacements } from "../../subgraphs/compute/placement/forget-placements.ts";
import { ADOPT_ASSET_BYTES, ADOPT_RESULT_BYTES, adoptUnknownObjects } from "./adopt-objects.ts";
import type { Reconciler } from "./schedule.ts";

/** For how long what is kept for a while only is kept, in milliseconds. */
export interface Kept {
  /** Outputs, logs and manifests, after their workload's end. */
  resultsMs: number;
  /** Where a workload ran, after its end. */
  placementsMs: number;
  /** Bytes that nothing refers to, after they were stored. */
  unusedObjectsMs: number;
  /** Jobs that no process knows, after they were due. */
  unknownJobsMs: number;
}

/** What a deployment keeps that keeps results for so many days. */
export function keptFor(resultRetentionDays: number): Kept {
  return {
    resultsMs: resultRetentionDays * DAY_MS,
    placementsMs: LIMITS.placementHistoryMs,
    unusedObjectsMs: LIMITS.unusedObjectMs,
    unknownJobsMs: LIMITS.unknownJobMs,
  };
}

export interface RetentionDeps {
  db: Database;
  clock: Clock;
  logger: Pick<Logger, "warn">;
  assets: Pick<ObjectStore, "list">;
  results: Pick<ObjectStore, "list" | "remove">;
  kept: Kept;
  /** Names of all jobs of this release. */
  knownJobs: readonly string[];
}

const EVERY_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
/** What one round takes up of each kind, so that a large backlog goes in many short rounds. */
const WORKLOADS = 200;
const ROWS = 2_000;
const LISTED = 500;

/** Where keyed objects lie. A noun whose creation takes a key and whose rows may go is added here. */
const KEYED_TABLES: KeyedTables = { wl: "compute.workload" };

/** Walks through a long list over many rounds; what fails on its way does not hold it up. */
type Walk = (after: string | null) => Promise<{ after: string | null; failures?: readonly unknown[] }>;

/**
 * Ends the time of what is kept for a while only: results of workloads, where they ran, stored bytes without use or row,
 * keys of objects that are gone, and jobs that nobody knows. Every part is bounded and may be done again.
 */
export function retention(deps: RetentionDeps): Reconciler {
  const walks = walksOf(deps).map((walk) => ({ walk, after: null as string | null }));
  return {
    name: "retention",
    everyMs: EVERY_MS,
    run: async () => {
      const now = deps.clock.now();
      await eachStep([
        () => expireResults(deps.db, { now, keptMs: deps.kept.resultsMs, limit: WORKLOADS }),
        () => forgetPlacements(deps.db, { now, keptMs: deps.kept.placementsMs, limit: WORKLOADS }),
        () => forgetJobs(deps, now),
        ...walks.map((standing) => async () => {
          const { after, failures = [] } = await standing.walk(standing.after);
          standing.after = after;
          if (failures.length > 0) throw failures[0];
        }),
      ]);
    },
  };
}

function walksOf({ db, clock, assets, results, kept }: RetentionDeps): Walk[] {
  const unusedMs = kept.unusedObjectsMs;
  const page = (after: string | null) => ({ after, limit: LISTED, now: clock.now(), unusedMs });
  return [
    (after) => adoptUnknownObjects(db, { objects: assets, insert: ADOPT_ASSET_BYTES }, page(after)),
    (after) => adoptUnknownObjects(db, { objects: results, insert: ADOPT_RESULT_BYTES }, page(after)),
    (after) => collectResultBytes({ db, objects: results, clock }, { after, limit: ROWS, unusedMs }),
    (after) => sweepIdempotencyKeys(db, KEYED_TABLES, { after, limit: ROWS }),
  ];
}

async function forgetJobs({ db, logger, knownJobs, kept }: RetentionDeps, now: Date): Promise<void> {
  const dueBefore = new Date(now.getTime() - kept.unknownJobsMs);
  const gone = await sweepOutbox(db, { knownJobs, dueBefore, limit: ROWS });
  if (Object.keys(gone).length > 0) logger.warn({ gone }, "jobs that no process knows any more were given up");
}
