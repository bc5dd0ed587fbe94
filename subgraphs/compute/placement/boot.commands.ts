import type { Database, Tx } from "../../../infra/db/database.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { placeStage, releaseAttempt } from "../jobs.ts";
import { release } from "../ledger/ledger.commands.ts";
import { loseGeneration } from "../lifecycle/finish.commands.ts";
import { recordBootFailure } from "../offer/offer-health.commands.ts";
import type { ComputeSettings } from "../settings.ts";
import { stageMachine } from "../stage/stage.machine.ts";
import { appendEvent } from "../workload/workload.transitions.ts";
import { type LockedAttempt, lockAttempt } from "./lock-attempt.ts";
import type { Attempt, Placement } from "./placement.entity.ts";
import { attemptMachine } from "./placement.machine.ts";
import { giveCapacityBack, markGone } from "./release.commands.ts";

/** Why an order came to nothing before its command ran. */
export type BootFailureCode =
  | "no_capacity"
  | "bad_order"
  | "isolation_unavailable"
  | "supplier_error"
  /** Its runner did not connect in time, whatever the supplier says. */
  | "boot_timeout"
  /** The supplier has nothing of it any more. */
  | "supplier_lost_it";

export interface BootFailure {
  orderId: string;
  code: BootFailureCode;
  /** For operators; never shown to tenants. */
  message: string;
  /** Proven absent at the supplier: the capacity comes back at once. */
  gone: boolean;
}

/**
 * The supplier took orders. Returns those that nobody waits for any more: they were ended while the launch was under way
 * and must be ended at the supplier too. An attempt that somebody holds is passed over, for its host or the next look at
 * it does the same: launches of other teams are settled together with it, and must not wait.
 */
export async function settleLaunched(
  db: Pick<Database, "sql">,
  launched: readonly { orderId: string; fence: number }[],
  now: Date,
): Promise<string[]> {
  const nextCheckAt = new Date(now.getTime() + LIMITS.attemptCheckMs);
  const [first] = launched;
  const stale =
    first && launched.length === 1
      ? await db.sql<{ id: string }>(SETTLE_ONE, [first.orderId, first.fence, nextCheckAt])
      : await db.sql<{ id: string }>(SETTLE, [
          launched.map((l) => l.orderId),
          launched.map((l) => l.fence),
          nextCheckAt,
        ]);
  return stale.map((s) => s.id);
}

/** `$1` order ids, `$2` their fences, `$3` when they are looked at next. */
const SETTLE = `with free as materialized (
    select a.id from unnest($1::text[], $2::int[]) as v(id, fence)
    join compute.attempt a on a.id = v.id and a.fence = v.fence and a.state = 'launching'
    for no key update of a skip locked),
  settled as (
    update compute.attempt a set state = 'booting', next_check_at = $3 from free where a.id = free.id
  )
  select id from compute.attempt where id = any($1) and state in ('failed', 'ended', 'gone')`;

/** The same for one order: its plan is made once, where that for an array is made anew each time. */
const SETTLE_ONE = `with settled as (
    update compute.attempt set state = 'booting', next_check_at = $3
    where id = (select id from compute.attempt where id = $1 and fence = $2 and state = 'launching'
      for no key update skip locked)
  )
  select id from compute.attempt where id = $1 and state in ('failed', 'ended', 'gone')`;

/**
 * Ends an attempt whose command never ran, holds it against the offer, and sends the stage back to look for the next
 * one. False when the attempt got further, was over already, or has meanwhile connected where it was given up for not
 * connecting.
 */
export async function failBoot(
  tx: Tx,
  failure: BootFailure,
  settings: Pick<ComputeSettings, "offerQuarantineMs">,
  now: Date,
): Promise<boolean> {
  const locked = await lockAttempt(tx, failure.orderId);
  if (!locked) return false;
  const { attempt } = locked;
  if (attemptMachine.decide(attempt.state, "fail") !== "failed") return false;
  if (failure.code === "boot_timeout" && attempt.sessionHash) return false;
  await tx.sql(
    `update compute.attempt set state = 'failed', failure_code = $2, failure_message = $3, terminate_requested_at = $4,
       next_check_at = $4 where id = $1`,
    [attempt.id, failure.code, failure.message, now],
  );
  const current =
    locked.placement.orderId === attempt.id && stageMachine.decide(locked.stage.status, "boot_failed") === "placing";
  const spoiled = current && hasLeftSomething(locked.placement);
  if (current && !spoiled) await lookAgain(tx, locked, now);
  attempt.state = "failed";
  const released = failure.gone && (await markGone(tx, attempt, now));
  if (!failure.gone) await enqueue(tx, releaseAttempt, { orderId: attempt.id }, now);
  // From here on rows that many commands want: of the supplier, the capacity and, last, the account. A fault of the
  // order itself says nothing of the offer.
  const until = failure.code === "bad_order" ? null : await recordBootFailure(tx, attempt.offerId, settings, now);
  if (current) await recordFailure(tx, locked, failure, until, now);
  if (released) await giveCapacityBack(tx, attempt);
  if (spoiled) await loseGeneration(tx, { placementId: locked.placement.id, trigger: "host_lost", now });
  else if (current) await release(tx, attempt.tenantId, attempt.workloadId, locked.placement.heldMicros, now);
  return true;
}

/** When a connected host must have its files and run the command. */
export function stagingDeadline(attempt: Pick<Attempt, "bootDeadlineAt">): Date {
  return new Date(attempt.bootDeadlineAt.getTime() + LIMITS.stagingTimeoutMs);
}

/**
 * Ends a generation whose host connected, beats and still does not get to run the command: it counts as a lost machine,
 * so another offer is tried first and the stage's recoveries bound the tries. False when it is not stuck, or no more.
 */
export async function loseStuckStaging(tx: Tx, orderId: string, now: Date): Promise<boolean> {
  const locked = await lockAttempt(tx, orderId);
  if (!locked) return false;
  const { attempt, placement } = locked;
  const staging = attempt.sessionHash !== null && placement.state === "provisioning" && placement.ranMs === null;
  if (placement.orderId !== orderId || !staging || stagingDeadline(attempt) > now) return false;
  await loseGeneration(tx, { placementId: placement.id, trigger: "runner_lost", now });
  return true;
}

/** A log, or the end of a command that never ran: the next order of the same generation would seem to have made it. */
function hasLeftSomething({ logBytes, ranMs }: Placement): boolean {
  return logBytes > 0 || ranMs !== null;
}

/** The stage looks for capacity again; this offer comes last for it from now on. */
async function lookAgain(tx: Tx, { attempt, placement, stage }: LockedAttempt, now: Date): Promise<void> {
  await tx.sql(
    `update compute.stage set status = 'placing', next_try_at = $2,
       failed_offer_ids = case when $3 = any(failed_offer_ids) then failed_offer_ids else failed_offer_ids || $3 end
     where id = $1`,
    [stage.id, now, attempt.offerId],
  );
  await tx.sql(
    "update compute.placement set held_micros = 0, lease_expires_at = null where id = $1 and state = 'provisioning'",
    [placement.id],
  );
  await enqueue(tx, placeStage, { stageRunId: stage.id }, now);
}

async function recordFailure(
  tx: Tx,
  { attempt, stage }: LockedAttempt,
  failure: BootFailure,
  quarantinedUntil: Date | null,
  now: Date,
): Promise<void> {
  await appendEvent(
    tx,
    attempt.workloadId,
    "workload.placement_failed",
    {
      stage_id: stage.stageId,
      generation: attempt.generation,
      sku: attempt.sku,
      code: failure.code,
      attempt: attempt.number,
      quarantined_until: quarantinedUntil?.toISOString() ?? null,
    },
    now,
  );
}
