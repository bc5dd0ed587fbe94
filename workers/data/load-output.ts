import { DONE, implementJob, type JobContext, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { loadOutput } from "../../subgraphs/data/jobs.ts";
import { type LoadedRows, releaseLoad, settleFailed, settleLoaded } from "../../subgraphs/data/load/load.commands.ts";
import { claimLoad, type LoadClaim, reportLoad } from "../../subgraphs/data/load/load-claim.ts";
import { LoadFailure, loadFailure } from "../../subgraphs/data/load/load-failure.ts";
import { StaleClaim, unlessStale } from "../../subgraphs/data/stale-claim.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { type MakeLoadDeps, makeLoad } from "./make-load.ts";
import { whenFree } from "./when-free.ts";

export interface LoadOutputDeps extends Omit<MakeLoadDeps, "db" | "clock"> {
  /** Aborts as soon as the process is to stop: a load may take minutes, and another process can do it. */
  leaving?: AbortSignal;
}

/**
 * Loads an output into its table. A second run finds the load taken, or over, and leaves it alone. One whose process
 * goes down or dies is done again from the start by another: it replaces its own rows.
 */
export function loadOutputJob(deps: LoadOutputDeps): JobImplementation<{ loadId: string }> {
  return implementJob(loadOutput, async ({ loadId }, context) => {
    if (deps.leaving?.aborted) return { outcome: "retry", reason: "this process is about to stop" };
    const claim = await claimLoad(context.db, loadId, context.clock.now());
    if (claim) await work(deps, claim, context);
    return DONE;
  });
}

async function work(deps: LoadOutputDeps, claim: LoadClaim, context: JobContext): Promise<void> {
  const { db, clock, logger } = context;
  const settling = { db, results: deps.results };
  const watch = watchLoad(context, claim);
  const stopping = AbortSignal.any([context.signal, ...(deps.leaving ? [deps.leaving] : [])]);
  const signal = AbortSignal.any([watch.signal, stopping]);
  try {
    const made = await attempt({ ...deps, db, clock }, claim, signal);
    if (!("failed" in made))
      return await unlessStale(whenFree(clock, signal, () => settleLoaded(settling, claim, made, clock.now())));
    if (made.failed instanceof StaleClaim) return;
    if (stopping.aborted) return await unlessStale(releaseLoad(db, claim, clock.now()));
    const failure = loadFailure(made.failed);
    logger.info({ err: failure, loadId: claim.loadId, word: failure.word }, "a load failed");
    await unlessStale(whenFree(clock, stopping, () => settleFailed(settling, claim, failure, clock.now())));
  } finally {
    await watch.stop();
  }
}

/** What broke is a result here; what breaks when that is written down leaves the load to its lease. */
async function attempt(
  deps: MakeLoadDeps,
  claim: LoadClaim,
  signal: AbortSignal,
): Promise<LoadedRows | { failed: unknown }> {
  try {
    return await makeLoad(deps, claim, signal);
  } catch (error) {
    return { failed: error };
  }
}

function watchLoad({ db, clock, logger }: JobContext, claim: LoadClaim): LeaseWatch {
  return new LeaseWatch(
    { clock, logger },
    {
      ids: { loadId: claim.loadId },
      deadlineAt: claim.deadlineAt,
      timedOut: () => new LoadFailure("size_limit", "The load was not done in time."),
      report: (now) => reportLoad(db, claim, now),
    },
  );
}
