import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import type { Database } from "../../infra/db/database.ts";
import { eachStep } from "../../infra/db/each-step.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { settleAbandonedLoads } from "../../subgraphs/data/load/abandoned-loads.ts";
import { forgetLoads } from "../../subgraphs/data/load/forget-loads.ts";
import type { LoadDeps } from "../../subgraphs/data/load/load.commands.ts";
import type { Reconciler } from "../reconcile/schedule.ts";

export interface AbandonedLoadsDeps extends LoadDeps {
  clock: Clock;
  /** Where loads of this machine put what is on its way. */
  scratchDir: string;
}

const EVERY_MS = 15_000;
/** Loads that one round looks at for some to forget. */
const LOOKED_AT = 200;

/** The folder, below its machine's, of what one process has on its way for a load. */
export function loadFolder({ loadId, fence }: { loadId: string; fence: number }): string {
  return `${loadId}-${fence}`;
}

/**
 * Finds loads whose process is gone or whose place in the queue is lost, what dead processes left on the disk, and loads
 * that nothing can ask for again.
 */
export function abandonedLoads(deps: AbandonedLoadsDeps): Reconciler {
  let after: string | null = null;
  return {
    name: "loads",
    everyMs: EVERY_MS,
    run: async () => {
      const now = deps.clock.now();
      await eachStep([
        () => settleAbandonedLoads(deps, now),
        async () => {
          after = (await forgetLoads(deps, { after, limit: LOOKED_AT, now })).after;
        },
        () => sweepScratch(deps.db, deps.scratchDir),
      ]);
    },
  };
}

/** Removes every folder but those of loads that a process has. They are read first: a load is claimed before its folder. */
async function sweepScratch(db: Database, scratchDir: string): Promise<void> {
  const names = await readdir(scratchDir).catch(() => []); // nothing was loaded here yet
  if (names.length === 0) return;
  const held = await db.sql<{ loadId: string; fence: number }>(
    `select id as "loadId", fence from data.sink_load where state = 'loading' and id || '-' || fence = any($1)`,
    [names],
  );
  const keep = new Set(held.map(loadFolder));
  for (const name of names.filter((one) => !keep.has(one)))
    await rm(path.join(scratchDir, name), { recursive: true, force: true });
}
