import type { Database } from "../../infra/db/database.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { Refused } from "../../infra/kernel/refusal.ts";
import { FetchFailed } from "../../infra/net/fetch-https.ts";
import type { StoredObject } from "../../infra/objects/object-store.ts";
import type { Logger } from "../../infra/telemetry/logger.ts";
import { ASSET } from "../../subgraphs/data/asset/asset.refusals.ts";
import { ByteMeter } from "../../subgraphs/data/asset/byte-meter.ts";
import {
  claimImported,
  commitImport,
  failImport,
  type Imported,
  releaseImport,
  reportImport,
} from "../../subgraphs/data/asset/import/import.commands.ts";
import type { ImportClaim } from "../../subgraphs/data/asset/import/import-claim.ts";
import { openSource, type SourceDeps } from "../../subgraphs/data/asset/import/open-source.ts";
import { sourceRefusal } from "../../subgraphs/data/asset/import/source-answer.ts";
import {
  type Content,
  formatOf,
  type StoreDeps,
  storeContent,
  storeRefusal,
} from "../../subgraphs/data/asset/store-content.ts";
import type { GithubAccountPort } from "../../subgraphs/data/published.ts";
import { StaleClaim, unlessStale } from "../../subgraphs/data/stale-claim.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { whenFree } from "./when-free.ts";

export interface ImportDeps extends SourceDeps, StoreDeps {
  db: Database;
  clock: Clock;
  /** Whose token is used for a repository when none came along. */
  githubAccounts: GithubAccountPort;
  logger: Logger;
}

/**
 * Fetches the source of an import that this process has, stores it and makes its asset ready, or failed with the reason.
 * Never throws for what the source or the store did. When `stopping` aborts, an import that any process can do is let go,
 * and one whose credential only this process has fails. Throws what the database throws; the import is then found by its
 * lease.
 */
export async function fetchImport(
  deps: ImportDeps,
  claim: ImportClaim,
  { token, stopping }: { token: string | null; stopping: AbortSignal },
): Promise<void> {
  const { db, clock, limits, logger } = deps;
  const meter = new ByteMeter(limits.importBytes);
  const watch = watchImport(deps, claim, meter);
  const signal = AbortSignal.any([watch.signal, stopping]);
  try {
    const imported = await fetchAndStore(deps, claim, { token, meter, signal });
    if (!(await deps.objects.has(imported.sha256))) throw new Refused(ASSET.asset_commit_failed);
    await whenFree(clock, signal, () => commitImport(db, claim, imported, limits, clock.now()));
  } catch (error) {
    if (error instanceof StaleClaim || watch.signal.reason instanceof StaleClaim) return;
    if (!(error instanceof Refused) && !stopping.aborted) throw error;
    if (stopping.aborted && token === null) return await letGo(deps, claim);
    const refused = stopping.aborted ? new Refused(ASSET.import_interrupted) : (error as Refused);
    if (refused.cause)
      logger.info({ err: refused.cause, assetId: claim.assetId, code: refused.kind.code }, "an import failed");
    await unlessStale(whenFree(clock, stopping, () => failImport(db, claim, refused, clock.now())));
  } finally {
    await watch.stop();
  }
}

async function fetchAndStore(
  deps: ImportDeps,
  claim: ImportClaim,
  { token, meter, signal }: { token: string | null; meter: ByteMeter; signal: AbortSignal },
): Promise<Imported> {
  const credential = token ?? (await accountToken(deps, claim));
  try {
    const { revision, content } = await openSource(deps, claim.source, { token: credential, signal, meter });
    const stored = await store(deps, claim, content, { meter, signal });
    return { ...stored, importedBytes: meter.bytes, format: formatOf(content), revision };
  } catch (error) {
    // What ended it says why, whatever it looked like to the stream that was cut off.
    if (signal.aborted) throw signal.reason;
    throw error instanceof FetchFailed ? sourceRefusal(error) : error;
  }
}

/** Tells the source's failures, which come through the store's streams, from the store's own. */
async function store(
  deps: ImportDeps,
  claim: ImportClaim,
  content: Content,
  { meter, signal }: { meter: ByteMeter; signal: AbortSignal },
): Promise<StoredObject> {
  try {
    const claimed = (object: StoredObject) => whenFree(deps.clock, signal, () => claimImported(deps, claim, object));
    return await storeContent(deps, `${claim.assetId}-${claim.fence}`, content, claimed);
  } catch (error) {
    const failure = error instanceof FetchFailed ? error : meter.failure;
    throw failure instanceof FetchFailed ? failure : storeRefusal(error);
  }
}

async function accountToken(deps: ImportDeps, claim: ImportClaim): Promise<string | null> {
  if (claim.source.kind !== "github") return null;
  const account = await deps.githubAccounts.reveal(deps.db, { tenantId: claim.tenantId });
  return account?.token ?? null;
}

function letGo({ db, clock }: ImportDeps, claim: ImportClaim): Promise<void> {
  return unlessStale(releaseImport(db, claim, clock.now()));
}

function watchImport(deps: ImportDeps, claim: ImportClaim, meter: ByteMeter): LeaseWatch {
  return new LeaseWatch(deps, {
    ids: { assetId: claim.assetId },
    deadlineAt: claim.deadlineAt,
    timedOut,
    report: (now) => reportImport(deps.db, claim, meter.bytes, deps.limits, now),
  });
}

function timedOut(): Refused {
  return new Refused(ASSET.source_timeout, {
    message: `The import was not done within ${LIMITS.assetImportMs / 60_000} minutes.`,
  });
}
