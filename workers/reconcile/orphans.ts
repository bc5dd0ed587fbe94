import type { Driver } from "../../infra/drivers/driver.ts";
import { isId } from "../../infra/kernel/ids.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { askSupplier } from "../compute/ask-supplier.ts";
import type { ComputeWorkerDeps } from "../compute/compute-workers.ts";
import type { Reconciler } from "./schedule.ts";

/** Orders that one round ends. */
const MOST_AT_ONCE = 50;

/**
 * Ends what a supplier holds and nobody pays for: orders that we do not know, and orders that it had said were gone.
 * The list is asked for before the table is read, and a claim commits before it launches, so an order that is on its
 * way is always known; all the same it takes two sightings, as what is ended here cannot be brought back.
 */
export function orphansReconciler(deps: ComputeWorkerDeps, driver: Driver): Reconciler {
  let suspects = new Set<string>();
  return {
    name: `orphans of ${driver.supplier}`,
    everyMs: 15_000,
    run: async (signal) => {
      const ask = { ...deps, signal, timeoutMs: LIMITS.supplierCallMs };
      const held = await askSupplier(ask, "list", (s) => driver.list(s));
      if (held === null) return; // it cannot tell now
      const orphans = await unknownAmong(
        deps,
        held.filter((id) => isId("order", id)),
      );
      const seenTwice = orphans.filter((id) => suspects.has(id)).slice(0, MOST_AT_ONCE);
      suspects = new Set(orphans);
      for (const orderId of seenTwice) {
        const answer = await askSupplier(ask, "terminate", (s) => driver.terminate(orderId, s));
        deps.logger.warn({ supplier: driver.supplier, orderId, answer }, "an order that nobody knows was ended");
      }
    },
  };
}

async function unknownAmong({ db }: ComputeWorkerDeps, orderIds: string[]): Promise<string[]> {
  if (orderIds.length === 0) return [];
  const open = await db.sql<{ id: string }>("select id from compute.attempt where id = any($1) and state <> 'gone'", [
    orderIds,
  ]);
  const known = new Set(open.map((a) => a.id));
  return orderIds.filter((id) => !known.has(id));
}
