import { DONE, implementJob, type JobContext, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { recordRun } from "../../subgraphs/data/jobs.ts";
import { finalFigures, settleFigures } from "../../subgraphs/data/load/final-figures.ts";
import { targetFailure } from "../../subgraphs/data/load/load-failure.ts";
import { updateRun } from "../../subgraphs/data/load/target/run-row.ts";
import { withTarget } from "../../subgraphs/data/load/target/target-client.ts";
import type { LoadOutputDeps } from "./load-output.ts";

export type RecordRunDeps = Pick<LoadOutputDeps, "secretBox" | "exceptions" | "results">;

const STATEMENT_MS = 30_000;

/**
 * Writes the last figures of a run beside the rows that were loaded from it. They do not change any more, so any number
 * of runs of this write the same; what could not be written is tried again by the reconciler.
 */
export function recordRunJob(deps: RecordRunDeps): JobImplementation<{ loadId: string }> {
  return implementJob(recordRun, async ({ loadId }, context) => {
    await record(deps, loadId, context);
    return DONE;
  });
}

async function record(deps: RecordRunDeps, loadId: string, { db, clock, logger, signal }: JobContext): Promise<void> {
  const figures = await finalFigures({ db, results: deps.results }, loadId);
  if (!figures) return;
  const { load, facts } = figures;
  const pin = { secretId: load.secretId, version: load.secretVersion };
  try {
    await withTarget({ ...deps, db, clock }, { ...load, pin }, signal, async (client) => {
      await client.query(`set statement_timeout = ${STATEMENT_MS}`);
      await updateRun(client, load, facts);
    });
  } catch (error) {
    if (signal.aborted) throw error; // it goes on elsewhere
    const { word } = targetFailure(error);
    logger.info({ err: error, loadId, word }, "the figures of a run could not be written");
    return;
  }
  await settleFigures(db, load);
}
