import type { Driver, OfferFact } from "../../infra/drivers/driver.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { confirmOffers, syncOffers, withdrawOffers } from "../../subgraphs/compute/offer/sync-offers.commands.ts";
import { askSupplier } from "../compute/ask-supplier.ts";
import type { ComputeWorkerDeps } from "../compute/compute-workers.ts";
import type { Reconciler } from "./schedule.ts";

const EVERY_MS = 3_000;

/** Keeps the offers of one supplier as the supplier says they are. */
export function offersReconciler(deps: ComputeWorkerDeps, driver: Driver): Reconciler {
  const { supplier } = driver;
  let last: { text: string; version: number } | null = null;
  return {
    name: `offers of ${supplier}`,
    everyMs: EVERY_MS,
    run: async (signal) => {
      if (await lookedAtElsewhere(deps, supplier)) return;
      const ask = { ...deps, signal, timeoutMs: LIMITS.supplierCallMs };
      const facts = await askSupplier(ask, "offers", (s) => driver.offers(s));
      if (facts === null) return void (await withdrawIfSilent(deps, supplier));
      last = await write(deps, supplier, facts, last);
    },
  };
}

/** Most rounds bring the same offers; then only the supplier's sign of life is written. */
async function write(
  deps: ComputeWorkerDeps,
  supplier: string,
  facts: readonly OfferFact[],
  last: { text: string; version: number } | null,
): Promise<{ text: string; version: number }> {
  const { db, clock, logger } = deps;
  const text = JSON.stringify(facts, (_, value) => (typeof value === "bigint" ? value.toString() : value));
  if (last?.text === text && (await confirmOffers(db, supplier, clock.now())) === last.version) return last;
  const { offered, withdrawn, version } = await syncOffers(db, supplier, facts, clock.now());
  if (offered + withdrawn > 0) logger.info({ supplier, offered, withdrawn }, "a supplier's offers changed");
  return { text, version };
}

interface Sighting {
  seen_at: Date;
}

/** Another process of the deployment asked a moment ago. */
async function lookedAtElsewhere({ db, clock }: ComputeWorkerDeps, supplier: string): Promise<boolean> {
  const [row] = await db.sql<Sighting>("select seen_at from compute.supplier where id = $1", [supplier]);
  return row !== undefined && clock.now().getTime() - row.seen_at.getTime() < EVERY_MS / 2;
}

async function withdrawIfSilent({ db, clock, logger }: ComputeWorkerDeps, supplier: string): Promise<void> {
  const now = clock.now();
  const [row] = await db.sql<Sighting>("select seen_at from compute.supplier where id = $1", [supplier]);
  if (!row || now.getTime() - row.seen_at.getTime() < LIMITS.supplierSilentMs) return;
  const withdrawn = await withdrawOffers(db, supplier, now);
  if (withdrawn > 0)
    logger.warn({ supplier, withdrawn, seenAt: row.seen_at }, "a silent supplier's offers are withdrawn");
}
