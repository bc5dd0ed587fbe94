import type { Database, Tx } from "../../../infra/db/database.ts";
import { forJob } from "../../../infra/db/job-bounds.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { appendAccountEvent } from "../account-event/append-account-event.ts";
import type { SecretBox } from "../secret/secret-box.ts";
import { type WebhookTarget, webhookTarget } from "../webhook/webhook.commands.ts";
import type { Attempt, AttemptError } from "./attempt.ts";
import { WebhookDelivery } from "./delivery.entity.ts";
import { nextTryAt } from "./retry-schedule.ts";

/** An attempt that may be under way for longer than this has died with its sender. */
export const CLAIM_MS = LIMITS.webhookAnswerMs + LIMITS.clockSkewMs + LIMITS.lockWaitMs;

/** One attempt to make. */
export interface ClaimedAttempt {
  deliveryId: string;
  tenantId: string;
  eventType: string;
  body: string;
  /** The fence: a later claim has a higher number. */
  number: number;
  target: WebhookTarget;
}

/** What came of it. */
export interface AttemptOutcome {
  durationMs: number;
  status: number | null;
  /** Null for a success. */
  error: AttemptError | null;
}

/** Takes a delivery that is due, so that nobody else sends it for a while. Null when there is nothing to do. */
export async function claimAttempt(
  db: Database,
  box: SecretBox,
  deliveryId: string,
  now: Date,
): Promise<ClaimedAttempt | null> {
  const [found] = await db.sql<{ tenant_id: string }>("select tenant_id from data.webhook_delivery where id = $1", [
    deliveryId,
  ]);
  if (!found) return null;
  return db.command(async (tx) => {
    const delivery = await tx.row(
      WebhookDelivery,
      `where t.id = $1 and t.state = 'pending' and t.due_at <= $2 and (t.claimed_until is null or t.claimed_until <= $2)
       for update`,
      [deliveryId, now],
    );
    if (!delivery || delivery.body === null) return null;
    const { tenantId, eventType, body } = delivery;
    const target = await webhookTarget(tx, box, tenantId);
    if (!target) {
      await giveUp(tx, deliveryId, now);
      return null;
    }
    const number = delivery.attempts + 1;
    const begun: Attempt = { number, at: now.toISOString(), durationMs: null, status: null, error: null };
    await tx.sql(
      `update data.webhook_delivery set attempts = $2, tries = tries + 1, queued_until = null, claimed_until = $3,
         attempt_log = $4 where id = $1`,
      [
        deliveryId,
        number,
        new Date(now.getTime() + CLAIM_MS),
        JSON.stringify([...delivery.attemptLog, begun].slice(-LIMITS.webhookAttemptsKept)),
      ],
    );
    return { deliveryId, tenantId, eventType, body, number, target };
  }, forJob(found.tenant_id));
}

/** This one alone: the reconciler ends the others, whose locks are not taken while this one's is held. */
async function giveUp(tx: Tx, deliveryId: string, now: Date): Promise<void> {
  await tx.sql(
    `update data.webhook_delivery set state = 'failed', last_error = 'webhook_off', ended_at = $2, due_at = null,
       queued_until = null, claimed_until = null where id = $1`,
    [deliveryId, now],
  );
}

/**
 * Writes down what came of an attempt and what follows from it: the end, or when to try again. Answers false for an
 * attempt whose claim has lapsed and was taken by another, which changes nothing.
 */
export function settleAttempt(
  db: Database,
  claim: ClaimedAttempt,
  outcome: AttemptOutcome,
  now: Date,
  random: number,
): Promise<boolean> {
  return db.command(async (tx) => {
    const delivery = await tx.row(
      WebhookDelivery,
      "where t.id = $1 and t.attempts = $2 and t.state = 'pending' and t.claimed_until is not null for update",
      [claim.deliveryId, claim.number],
    );
    if (!delivery) return false;
    const log = [...delivery.attemptLog];
    const begun = log.pop()!;
    log.push({ ...begun, ...outcome });
    if (outcome.error === "interrupted") await write(tx, delivery, { log, tries: delivery.tries - 1, dueAt: now });
    else if (outcome.error === null) await succeed(tx, delivery, claim, log, now);
    else await fail(tx, delivery, claim, log, { error: outcome.error, now, random });
    return true;
  }, forJob(claim.tenantId));
}

async function succeed(tx: Tx, { id }: WebhookDelivery, claim: ClaimedAttempt, log: Attempt[], now: Date) {
  await tx.sql(
    `update data.webhook_delivery set state = 'delivered', attempt_log = $2, last_error = null, ended_at = $3, due_at = null,
       claimed_until = null where id = $1`,
    [id, JSON.stringify(log), now],
  );
  await tx.sql(
    "update data.webhook set failures = 0, failing_since = null where tenant_id = $1 and version = $2 and failures > 0",
    [claim.tenantId, claim.target.version],
  );
}

interface Failure {
  error: AttemptError;
  now: Date;
  /** A number in [0, 1), for the wait. */
  random: number;
}

async function fail(
  tx: Tx,
  delivery: WebhookDelivery,
  claim: ClaimedAttempt,
  log: Attempt[],
  { error, now, random }: Failure,
): Promise<void> {
  const dueAt = error === "gone" ? null : nextTryAt(delivery.tries, now, delivery.retriesUntil, random);
  await write(tx, delivery, { log, tries: delivery.tries, dueAt, error, endedAt: dueAt ? null : now });
  const [webhook] = await tx.sql<{ failing_since: Date; failures: number }>(
    `update data.webhook set failures = failures + 1, failing_since = coalesce(failing_since, $3)
     where tenant_id = $1 and version = $2 and disabled_at is null returning failing_since, failures`,
    [claim.tenantId, claim.target.version, new Date(log.at(-1)!.at)],
  );
  if (!webhook || dueAt) return;
  // Nothing else got through either, from this delivery's first try in the round to its last.
  const firstTryAt = new Date((log.at(-delivery.tries) ?? log[0]!).at);
  const failingMs = now.getTime() - webhook.failing_since.getTime();
  if (error === "gone" || (webhook.failing_since <= firstTryAt && failingMs >= LIMITS.webhookFailingMs))
    await disable(tx, claim, { ...webhook, lastStatus: log.at(-1)!.status }, now);
}

/** Turns a webhook off and tells the team's account stream; the rest of its deliveries is given up by the reconciler. */
async function disable(
  tx: Tx,
  { tenantId, target }: ClaimedAttempt,
  failing: { failing_since: Date; failures: number; lastStatus: number | null },
  now: Date,
): Promise<void> {
  await tx.sql("update data.webhook set disabled_at = $3 where tenant_id = $1 and version = $2", [
    tenantId,
    target.version,
    now,
  ]);
  await appendAccountEvent(tx, {
    tenantId,
    type: "webhook.disabled",
    payload: {
      since: failing.failing_since.toISOString(),
      last_status: failing.lastStatus,
      failures: failing.failures,
    },
    now,
  });
}

interface Written {
  log: Attempt[];
  tries: number;
  dueAt: Date | null;
  error?: AttemptError;
  endedAt?: Date | null;
}

/** A delivery that did not get through: pending as long as it has a time for the next try. */
async function write(tx: Tx, { id }: WebhookDelivery, { log, tries, dueAt, error, endedAt }: Written): Promise<void> {
  await tx.sql(
    `update data.webhook_delivery set state = $2, attempt_log = $3, tries = $4, due_at = $5, last_error = coalesce($6, last_error),
       ended_at = $7, claimed_until = null where id = $1`,
    [id, dueAt ? "pending" : "failed", JSON.stringify(log), tries, dueAt, error ?? null, endedAt ?? null],
  );
}
