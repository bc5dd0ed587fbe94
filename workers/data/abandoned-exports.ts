import { readdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import { allSteps, eachStep } from "../../infra/db/each-step.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { forgetExports, settleAbandonedExports } from "../../subgraphs/data/export/abandoned-exports.ts";
import { type CleaningDeps, cleanExport, uncleanedExports } from "../../subgraphs/data/export/clean-export.ts";
import type { Reconciler } from "../reconcile/schedule.ts";

export interface AbandonedExportsDeps extends CleaningDeps {
  /** Where exports of this machine put what is on its way. */
  scratchDir: string;
}

const EVERY_MS = 15_000;
/** Failed exports that one round cleans up after. */
const CLEANED_AT_ONCE = 16;
/** Exports that one round looks at for some to forget. */
const LOOKED_AT = 500;
/** No export takes as long: its folder was left by a process that died. */
const LEFTOVER_MS = 4 * LIMITS.exportMs;

/** Finds exports whose process is gone or whose place in the queue is lost, and what failed ones left behind. */
export function abandonedExports(deps: AbandonedExportsDeps): Reconciler {
  let after = "";
  return {
    name: "exports",
    everyMs: EVERY_MS,
    run: async () => {
      const now = deps.clock.now();
      await eachStep([
        () => settleAbandonedExports(deps.db, now),
        () => cleanSome(deps),
        async () => {
          after = (await forgetExports(deps.db, { after, limit: LOOKED_AT })).after;
        },
        () => sweepScratch(deps.scratchDir, now),
      ]);
    },
  };
}

/** At once, so that a store that does not answer costs a round one wait. */
async function cleanSome(deps: AbandonedExportsDeps): Promise<void> {
  const rows = await uncleanedExports(deps.db, CLEANED_AT_ONCE);
  await allSteps(rows.map((row) => () => cleanExport(deps, row)));
}

async function sweepScratch(scratchDir: string, now: Date): Promise<void> {
  const names = await readdir(scratchDir).catch(() => []); // nothing was exported here yet
  for (const name of names) {
    const folder = path.join(scratchDir, name);
    const found = await stat(folder).catch(() => null); // its process removes it at this moment
    if (found && now.getTime() - found.mtimeMs > LEFTOVER_MS) await rm(folder, { recursive: true, force: true });
  }
}
