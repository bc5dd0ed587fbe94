import { forJob } from "../../infra/db/job-bounds.ts";
import { type Driver, isHeld, type Observation } from "../../infra/drivers/driver.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { backoffMs } from "../../infra/queue/backoff.ts";
import { DONE, implementJob, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { releaseAttempt } from "../../subgraphs/compute/jobs.ts";
import { Attempt } from "../../subgraphs/compute/placement/placement.entity.ts";
import { confirmGone } from "../../subgraphs/compute/placement/release.commands.ts";
import { askSupplier } from "./ask-supplier.ts";
import type { ComputeWorkerDeps } from "./compute-workers.ts";

/** Ends an attempt at its supplier, again and again until it is confirmed gone. */
export function releaseAttemptJob(deps: ComputeWorkerDeps): JobImplementation<{ orderId: string }> {
  return implementJob(releaseAttempt, async ({ orderId }, { signal }) => {
    const released = await releaseOnce(deps, orderId, signal);
    if (released === "done") return DONE;
    return { outcome: "later", at: released.nextTryAt, reason: released.reason };
  });
}

/** Waits between two tries: short while the supplier is at it, ever longer while it does not answer. */
const ENDING_BACKOFF = { firstMs: 250, longestMs: 2_000 };
const SILENT_BACKOFF = { firstMs: 1_000, longestMs: LIMITS.attemptCheckMaxMs };

/**
 * One try. Done when nothing is left to release: the attempt is gone, not known, or has not ended. Otherwise the row says
 * what the supplier said and when to try again; there is no last try, because whatever is not gone costs money.
 */
export async function releaseOnce(
  deps: ComputeWorkerDeps,
  orderId: string,
  signal: AbortSignal,
): Promise<"done" | { nextTryAt: Date; reason: string }> {
  const { db, clock } = deps;
  const attempt = await db.row(Attempt, "where t.id = $1", [orderId]);
  if (!attempt || (attempt.state !== "failed" && attempt.state !== "ended")) return "done";
  const driver = deps.drivers.get(attempt.supplier);
  const said = driver ? await end(deps, driver, orderId, signal) : "unknown: this process has no driver for it";
  if (said === "gone") {
    await db.command((tx) => confirmGone(tx, orderId, clock.now()), forJob(attempt.tenantId));
    return "done";
  }
  const policy = said.startsWith("unknown") ? SILENT_BACKOFF : ENDING_BACKOFF;
  const waitMs = backoffMs(policy, attempt.fruitlessChecks + 1, deps.random);
  const nextTryAt = new Date(clock.now().getTime() + waitMs);
  await db.sql(
    `update compute.attempt set fruitless_checks = fruitless_checks + 1, supplier_said = $2, next_check_at = $3
     where id = $1 and state in ('failed', 'ended')`,
    [orderId, said, nextTryAt],
  );
  return { nextTryAt, reason: said };
}

/** Asks for the end and, when told that it has come, looks: a supplier that still shows the order has not ended it. */
async function end(deps: ComputeWorkerDeps, driver: Driver, orderId: string, signal: AbortSignal): Promise<string> {
  const ask = { ...deps, signal, timeoutMs: LIMITS.supplierCallMs };
  const answer = await askSupplier(ask, "terminate", (s) => driver.terminate(orderId, s));
  if (answer === null) return "unknown: the request to end it was not answered";
  if (answer !== "gone") return answer;
  const seen = await askSupplier(ask, "observe", (s) => driver.observe(orderId, s));
  return stillThere(seen) ? `said gone, yet it is ${seen!.state}` : "gone";
}

/** A supplier that forgets what it ended says `unknown` here, which contradicts nothing. */
function stillThere(seen: Observation | null): boolean {
  return seen !== null && isHeld(seen);
}
