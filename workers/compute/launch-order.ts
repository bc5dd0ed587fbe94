import { forJob } from "../../infra/db/job-bounds.ts";
import { isWaitForOthersOver } from "../../infra/db/unavailable.ts";
import type { LaunchOutcome } from "../../infra/drivers/driver.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { type BootFailure, failBoot, settleLaunched } from "../../subgraphs/compute/placement/boot.commands.ts";
import { orderToken } from "../../subgraphs/compute/placement/order-token.ts";
import type { ClaimedOrder } from "../../subgraphs/compute/placement/seeker.ts";
import { askSupplier } from "./ask-supplier.ts";
import { coalesce } from "./coalesce.ts";
import type { ComputeWorkerDeps } from "./compute-workers.ts";

/**
 * Sends an order to its supplier and writes down what became of it. `again`: it may have been sent before, so that an
 * earlier request of the same order can still be on its way.
 */
export type LaunchOrderFn = (claimed: ClaimedOrder, signal: AbortSignal, again?: boolean) => Promise<void>;

/**
 * One for each process: orders that were taken at about the same time are settled in one transaction. Launching is
 * idempotent by the order's id and may be repeated; a launch whose outcome is not known is left to be observed.
 */
export function createLauncher(deps: ComputeWorkerDeps): LaunchOrderFn {
  const settle = coalesce(async (launched: readonly ClaimedOrder[]) => {
    const orders = launched.map((l) => ({ orderId: l.order.orderId, fence: l.fence }));
    const stale = new Set(await settleLaunched(deps.db, orders, deps.clock.now()));
    return orders.map((o) => stale.has(o.orderId));
  });
  return async (claimed, signal, again = false) => {
    const outcome = await launch(deps, claimed, signal);
    switch (outcome.outcome) {
      case "accepted":
      case "pending":
        if (await settle(claimed)) await endAtOnce(deps, claimed, signal);
        return;
      case "refused":
        // A refusal proves an order absent only while no earlier request of it can arrive; otherwise it is ended first.
        await refused(deps, claimed, { code: outcome.reason, message: outcome.message, gone: !again });
        return;
      case "unknown":
        await lookSoon(deps, claimed.order.orderId, outcome.message);
        return;
    }
  };
}

/**
 * Writes down that the supplier has none of it. While somebody holds rows of the team the order is left to be observed,
 * which finds the same: it was claimed together with orders of other teams, whose outcome this is not.
 */
async function refused(
  deps: ComputeWorkerDeps,
  { order: { orderId }, tenantId }: ClaimedOrder,
  failure: Omit<BootFailure, "orderId">,
): Promise<void> {
  const now = deps.clock.now();
  const failed = deps.db.command((tx) => failBoot(tx, { orderId, ...failure }, deps.settings, now), forJob(tenantId));
  await failed.catch((error: unknown) => {
    if (!isWaitForOthersOver(error)) throw error;
    deps.logger.info({ orderId }, "a refused order's team is held");
  });
}

async function launch(deps: ComputeWorkerDeps, claimed: ClaimedOrder, signal: AbortSignal): Promise<LaunchOutcome> {
  const { order, supplier } = claimed;
  const driver = deps.drivers.get(supplier);
  if (!driver) return { outcome: "unknown", message: `no driver for ${supplier} in this process` };
  const token = orderToken(deps.runnerKey, order.orderId);
  const full = { ...order, token, intakeUrl: deps.settings.intakeUrl };
  const ask = { ...deps, signal, timeoutMs: LIMITS.launchTimeoutMs };
  const outcome = await askSupplier(ask, "launch", (s) => driver.launch(full, s));
  return outcome ?? { outcome: "unknown", message: "the launch was not answered" };
}

/** The order was ended while its launch was under way, so the end may have overtaken it. */
async function endAtOnce(
  deps: ComputeWorkerDeps,
  { order, supplier }: ClaimedOrder,
  signal: AbortSignal,
): Promise<void> {
  const driver = deps.drivers.get(supplier)!;
  const ask = { ...deps, signal, timeoutMs: LIMITS.supplierCallMs };
  const answer = await askSupplier(ask, "terminate", (s) => driver.terminate(order.orderId, s));
  deps.logger.info({ orderId: order.orderId, answer }, "an order was ended while it was launched");
}

/** The reconciler asks the supplier in a moment instead of after the usual time. */
async function lookSoon(deps: ComputeWorkerDeps, orderId: string, message: string): Promise<void> {
  await deps.db.sql(
    "update compute.attempt set next_check_at = $2, supplier_said = $3 where id = $1 and state = 'launching'",
    [orderId, new Date(deps.clock.now().getTime() + LIMITS.attemptCheckMs), message],
  );
}
