import { allSteps } from "../../infra/db/each-step.ts";
import { forJob } from "../../infra/db/job-bounds.ts";
import { isHeld, type Observation } from "../../infra/drivers/driver.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import {
  type BootFailureCode,
  failBoot,
  loseStuckStaging,
  settleLaunched,
  stagingDeadline,
} from "../../subgraphs/compute/placement/boot.commands.ts";
import { hasBeatenSince, loseIfStillGone, noteGone } from "../../subgraphs/compute/placement/gone.commands.ts";
import { Attempt, Placement } from "../../subgraphs/compute/placement/placement.entity.ts";
import { askSupplier } from "../compute/ask-supplier.ts";
import type { ComputeWorkerDeps } from "../compute/compute-workers.ts";
import type { LaunchOrderFn } from "../compute/launch-order.ts";
import { releaseOnce } from "../compute/release-attempt.ts";
import type { Reconciler } from "./schedule.ts";

/** Attempts that one round looks at. */
const BATCH = 128;
/** A running guest has its lease; asking its supplier is the second signal and may be rarer. */
const RUNNING_CHECK_MS = 10_000;
/** The job that releases an attempt is given this much time before the reconciler does its work. */
const RELEASE_GRACE_MS = 5_000;

/** Looks at every order that is out, those that have not been looked at for longest first. */
export function attemptsReconciler(deps: ComputeWorkerDeps, launchOrder: LaunchOrderFn): Reconciler {
  return {
    name: "attempts",
    everyMs: 1_000,
    run: async (signal) => {
      const due = await takeDue(deps);
      await allSteps(due.map((attempt) => () => check(deps, launchOrder, attempt, signal)));
    },
  };
}

/** Takes attempts whose time has come and gives them their next time, so that no other process takes them as well. */
async function takeDue({ db, clock, drivers }: ComputeWorkerDeps): Promise<Attempt[]> {
  const nowMs = clock.now().getTime();
  return db.command(async (tx) => {
    const due = await tx.rows(
      Attempt,
      `where t.state <> 'gone' and t.supplier = any($1)
         and t.next_check_at <= case when t.state in ('failed', 'ended') then $3::timestamptz else $2::timestamptz end
       order by t.next_check_at, t.id limit ${BATCH} for update skip locked`,
      [[...drivers.keys()], new Date(nowMs), new Date(nowMs - RELEASE_GRACE_MS)],
    );
    if (due.length === 0) return due;
    await tx.sql(
      "update compute.attempt a set next_check_at = case when state = 'running' then $2::timestamptz else $3::timestamptz end where id = any($1)",
      [due.map((a) => a.id), new Date(nowMs + RUNNING_CHECK_MS), new Date(nowMs + LIMITS.attemptCheckMs)],
    );
    return due;
  });
}

async function check(
  deps: ComputeWorkerDeps,
  launchOrder: LaunchOrderFn,
  attempt: Attempt,
  signal: AbortSignal,
): Promise<void> {
  if (attempt.state === "failed" || attempt.state === "ended") {
    await releaseOnce(deps, attempt.id, signal);
    return;
  }
  const driver = deps.drivers.get(attempt.supplier)!;
  const ask = { ...deps, signal, timeoutMs: LIMITS.supplierCallMs };
  const seen = await askSupplier(ask, "observe", (s) => driver.observe(attempt.id, s));
  if (attempt.goneSeenAt && seen && isHeld(seen)) await clearGone(deps, attempt);
  if (seen?.state === "reclaiming") await noteReclaim(deps, attempt);
  if (await endStuckStaging(deps, attempt)) return;
  const hasStarted = attempt.state === "running" || attempt.sessionHash !== null;
  if (hasStarted && seen?.state !== "never_seen") await checkConnected(deps, attempt, seen);
  else await checkBooting(deps, launchOrder, attempt, seen, signal);
}

/**
 * Its runner has not connected, so no command can have run, or its host died before it wrote the order down. What the
 * supplier proves gone has failed at once, without waiting for the boot deadline; what it cannot tell (a time-out now
 * and then is no dead machine) is left until then.
 */
async function checkBooting(
  deps: ComputeWorkerDeps,
  launchOrder: LaunchOrderFn,
  attempt: Attempt,
  seen: Observation | null,
  signal: AbortSignal,
): Promise<void> {
  const { id: orderId, fence, supplier, tenantId } = attempt;
  if (seen?.state === "gone") return fail(deps, attempt, "supplier_lost_it", "the supplier has nothing of it", true);
  if (attempt.bootDeadlineAt <= deps.clock.now())
    return fail(deps, attempt, "boot_timeout", "no runner connected before the boot deadline", false);
  if (seen?.state !== "never_seen") {
    if (attempt.state !== "launching") return;
    if (seen !== null && isHeld(seen))
      return void (await settleLaunched(deps.db, [{ orderId, fence }], deps.clock.now()));
  }
  // The process that claimed it may have died before its launch, or the host that took it before it wrote it down. The
  // same id again is harmless if neither did.
  const { sku, region, cpuMillis, memoryMb, gpus } = attempt;
  const order = { orderId, sku, region, cpuMillis, memoryMb, gpuCount: gpus };
  await launchOrder({ order, fence, supplier, tenantId }, signal, true);
}

/** A host that beats renews its lease for ever, whether its guest's files come or not. */
async function endStuckStaging({ db, clock, logger }: ComputeWorkerDeps, attempt: Attempt): Promise<boolean> {
  const now = clock.now();
  if (attempt.state === "running" || !attempt.sessionHash || stagingDeadline(attempt) > now) return false;
  const ended = await db.command((tx) => loseStuckStaging(tx, attempt.id, now), forJob(attempt.tenantId));
  if (ended)
    logger.warn({ orderId: attempt.id, offerId: attempt.offerId }, "a connected host did not get to run its command");
  return ended;
}

/**
 * The host has been heard. `gone` now proves that no process of the guest lives, but not that all it did has reached
 * us: the end of a normal run looks the same for as long as its last records are under way, or lie in the spool of a
 * host that restarts. So it must stay gone for `goneToLostMs` without a beat of the host; a beat means that the host is
 * there and still delivers. Anything else but `gone` proves nothing: then the lease decides, elsewhere.
 */
async function checkConnected(deps: ComputeWorkerDeps, attempt: Attempt, seen: Observation | null): Promise<void> {
  if (seen?.state !== "gone") return;
  const { db, clock } = deps;
  const now = clock.now();
  const placement = await db.row(Placement, "where t.id = $1 and t.order_id = $2", [attempt.placementId, attempt.id]);
  if (!placement) return;
  const goneSince = attempt.goneSeenAt;
  if (!goneSince || hasBeatenSince(attempt, placement)) return noteGone(db, attempt, now);
  if (now.getTime() - goneSince.getTime() >= LIMITS.goneToLostMs)
    await db.command((tx) => loseIfStillGone(tx, attempt.id, deps.settings, now), forJob(attempt.tenantId));
}

async function fail(
  deps: ComputeWorkerDeps,
  { id: orderId, tenantId }: Attempt,
  code: BootFailureCode,
  message: string,
  gone: boolean,
): Promise<void> {
  const failure = { orderId, code, message, gone };
  await deps.db.command((tx) => failBoot(tx, failure, deps.settings, deps.clock.now()), forJob(tenantId));
}

async function clearGone({ db }: ComputeWorkerDeps, attempt: Attempt): Promise<void> {
  await db.sql("update compute.attempt set gone_seen_at = null where id = $1", [attempt.id]);
}

/** When the machine is then gone, it is known why. */
async function noteReclaim({ db }: ComputeWorkerDeps, attempt: Attempt): Promise<void> {
  await db.sql(
    "update compute.placement set interrupt_trigger = 'reclaim' where id = $1 and order_id = $2 and interrupt_trigger is null",
    [attempt.placementId, attempt.id],
  );
}
