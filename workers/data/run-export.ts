import { LIMITS } from "../../infra/kernel/limits.ts";
import { Refused } from "../../infra/kernel/refusal.ts";
import type { StoredObject } from "../../infra/objects/object-store.ts";
import { DONE, implementJob, type JobContext, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { ASSET } from "../../subgraphs/data/asset/asset.refusals.ts";
import type { AssetLimits } from "../../subgraphs/data/asset/asset-limits.ts";
import { cleanExport } from "../../subgraphs/data/export/clean-export.ts";
import {
  claimExported,
  commitExport,
  failExport,
  releaseExport,
  reportExport,
} from "../../subgraphs/data/export/export.commands.ts";
import { QueryExport } from "../../subgraphs/data/export/export.entity.ts";
import { claimExport, type ExportClaim } from "../../subgraphs/data/export/export-claim.ts";
import { ExportFailure, exportTimedOut } from "../../subgraphs/data/export/export-failure.ts";
import { RecordCounter, type ResultLimits } from "../../subgraphs/data/export/record-counter.ts";
import { runExport } from "../../subgraphs/data/jobs.ts";
import { StaleClaim, unlessStale } from "../../subgraphs/data/stale-claim.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { type MakeExportDeps, makeExport } from "./make-export.ts";
import { whenFree } from "./when-free.ts";

export interface RunExportDeps extends Omit<MakeExportDeps, "db" | "clock"> {
  limits: AssetLimits;
  /** Most that one query may give; the deployment's limits unless told. */
  resultLimits?: ResultLimits;
  /** Aborts as soon as the process is to stop: a query may take minutes, and another process can run it. */
  leaving?: AbortSignal;
}

const RESULT_LIMITS: ResultLimits = { rows: LIMITS.exportRows, bytes: LIMITS.exportBytes };

/**
 * Runs an export. A second run finds it taken, or over, and leaves it alone. One whose process goes down in good order is
 * given back and runs again elsewhere; one whose process died is failed by the reconciler.
 */
export function runExportJob(deps: RunExportDeps): JobImplementation<{ exportId: string }> {
  return implementJob(runExport, async ({ exportId }, context) => {
    if (deps.leaving?.aborted) return { outcome: "retry", reason: "this process is about to stop" };
    const claim = await claimExport(context.db, exportId, context.clock.now());
    if (claim) await work(deps, claim, context);
    return DONE;
  });
}

async function work(deps: RunExportDeps, claim: ExportClaim, context: JobContext): Promise<void> {
  const { resultLimits = RESULT_LIMITS } = deps;
  const { db, clock, logger } = context;
  const counter = new RecordCounter(resultLimits, { header: claim.format === "csv" });
  const watch = watchExport(deps, claim, counter, context);
  const stopping = AbortSignal.any([context.signal, ...(deps.leaving ? [deps.leaving] : [])]);
  const signal = AbortSignal.any([watch.signal, stopping]);
  try {
    await perform(deps, claim, context, { counter, signal });
  } catch (error) {
    if (error instanceof StaleClaim) return;
    if (stopping.aborted) return await unlessStale(releaseExport(db, claim, clock.now()));
    const failure = failureOf(error);
    logger.info({ err: failure.cause, exportId: claim.exportId, word: failure.word }, "an export failed");
    await unlessStale(whenFree(clock, stopping, () => fail(deps, claim, failure, context)));
  } finally {
    await watch.stop();
  }
}

async function perform(
  deps: RunExportDeps,
  claim: ExportClaim,
  { db, clock }: JobContext,
  { counter, signal }: { counter: RecordCounter; signal: AbortSignal },
): Promise<void> {
  const claimed = (object: StoredObject) => whenFree(clock, signal, () => claimExported({ db, clock }, claim, object));
  const made = await makeExport({ ...deps, db, clock }, claim, { counter, signal, claimed });
  if (!(await deps.objects.has(made.sha256))) throw new Refused(ASSET.asset_commit_failed);
  await whenFree(clock, signal, () => commitExport(db, claim, made, deps.limits, clock.now()));
}

/** Fails the export, then removes what it left; a removal that fails is repeated by the reconciler. */
async function fail(
  deps: RunExportDeps,
  claim: ExportClaim,
  because: ExportFailure,
  context: JobContext,
): Promise<void> {
  const { db, clock } = context;
  await failExport(db, claim, because, clock.now());
  const row = await db.row(QueryExport, "where t.tenant_id = $1 and t.id = $2", [claim.tenantId, claim.exportId]);
  if (row) await cleanExport({ db, clock, objects: deps.objects }, row);
}

/** Errors of the database are not the export's: thrown again, they leave it to its lease. */
function failureOf(error: unknown): ExportFailure {
  if (error instanceof ExportFailure) return error;
  if (!(error instanceof Refused)) throw error;
  if (error.kind === ASSET.storage_quota_exceeded) return new ExportFailure("quota_exceeded", error.message, error);
  return new ExportFailure("internal", "The file could not be kept. Export again.", error);
}

function watchExport(deps: RunExportDeps, claim: ExportClaim, counter: RecordCounter, context: JobContext): LeaseWatch {
  const { db, clock, logger } = context;
  return new LeaseWatch(
    { clock, logger },
    {
      ids: { exportId: claim.exportId },
      deadlineAt: claim.deadlineAt,
      timedOut: exportTimedOut,
      report: (now) => {
        const progress = { rows: Math.max(counter.rows, 0), bytes: counter.bytes };
        return reportExport(db, claim, progress, deps.limits, now);
      },
    },
  );
}
