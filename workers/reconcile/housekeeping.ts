import type { Database } from "../../infra/db/database.ts";
import { eachStep } from "../../infra/db/each-step.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import { collectAssetBytes } from "../../subgraphs/data/asset/collect-asset-bytes.ts";
import { sweepConnections } from "../../subgraphs/data/connection/sweep-connections.ts";
import { destroyRetiredSecrets } from "../../subgraphs/data/secret/destroy-retired-secrets.ts";
import type { Reconciler } from "./schedule.ts";

export interface HousekeepingDeps {
  db: Database;
  clock: Clock;
  assets: ObjectStore;
  results: ObjectStore;
}

const EVERY_MS = 60_000;
/** A put that has not ended after a day was cut short. */
const ABANDONED_MS = 24 * 3600 * 1000;
/** Log rows that one round takes. */
const LOG_BATCH = 5_000;

/** Removes what nothing can need any more: bytes of deleted assets, retired secrets, deleted connections, live log rows, leftovers of puts. */
export function housekeeping(deps: HousekeepingDeps): Reconciler {
  return {
    name: "housekeeping",
    everyMs: EVERY_MS,
    run: async () => {
      const now = deps.clock.now();
      await eachStep([
        () => collectAssetBytes({ db: deps.db, objects: deps.assets, clock: deps.clock }),
        () => destroyRetiredSecrets(deps.db, now),
        () => sweepConnections(deps.db, now),
        () => sweepLogRows(deps.db, now),
        () => deps.assets.sweepTemp(ABANDONED_MS),
        () => deps.results.sweepTemp(ABANDONED_MS),
      ]);
    },
  };
}

/** Live log rows go a day after the end, once the committed log holds the same bytes. */
async function sweepLogRows(db: Database, now: Date): Promise<number> {
  const before = new Date(now.getTime() - LIMITS.liveLogRetentionHours * 3600 * 1000);
  const gone = await db.sql(
    `delete from compute.log_chunk c using (
       select c.workload_id, c.seq from compute.workload w
         join compute.placement p on p.workload_id = w.id and p.log_committed_at is not null
         join compute.log_chunk c on c.workload_id = w.id and c.placement_id = p.id
       where w.terminal_at < $1 limit ${LOG_BATCH}) old
     where c.workload_id = old.workload_id and c.seq = old.seq returning 1`,
    [before],
  );
  return gone.length;
}
