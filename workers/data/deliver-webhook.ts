import type { Clock } from "../../infra/kernel/clock.ts";
import type { Posted, PostPort } from "../../infra/net/post-https.ts";
import { DONE, implementJob, type JobImplementation } from "../../infra/queue/implement-job.ts";
import {
  type AttemptOutcome,
  type ClaimedAttempt,
  claimAttempt,
  settleAttempt,
} from "../../subgraphs/data/delivery/attempt.commands.ts";
import { queueDeliveries } from "../../subgraphs/data/delivery/queue-deliveries.ts";
import { signedAttempt } from "../../subgraphs/data/delivery/signed-attempt.ts";
import { deliverWebhook } from "../../subgraphs/data/jobs.ts";
import type { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";
import { whenFree } from "./when-free.ts";

export interface DeliverWebhookDeps {
  box: SecretBox;
  poster: PostPort;
  /** A number in [0, 1), so that receivers which were down together are not met by all at once. */
  random: () => number;
}

/**
 * Makes one attempt at a delivery: takes it, sends it, writes down what came of it, and queues what the team's receiver
 * now has room for. A run that dies after sending leaves a claim that lapses, and the receiver sees the same delivery again.
 */
export function deliverWebhookJob(deps: DeliverWebhookDeps): JobImplementation<{ deliveryId: string }> {
  return implementJob(deliverWebhook, async ({ deliveryId }, { db, clock, signal }) => {
    const claim = await claimAttempt(db, deps.box, deliveryId, clock.now());
    if (!claim) return DONE;
    const outcome = await send(deps.poster, claim, clock, signal);
    await whenFree(clock, signal, () => settleAttempt(db, claim, outcome, clock.now(), deps.random()));
    if (!signal.aborted) await queueDeliveries(db, claim.tenantId, clock.now());
    return DONE;
  });
}

async function send(
  poster: PostPort,
  claim: ClaimedAttempt,
  clock: Clock,
  signal: AbortSignal,
): Promise<AttemptOutcome> {
  const startedMs = clock.monotonicMs();
  const posted = await poster.post(
    signedAttempt(
      claim.target,
      { deliveryId: claim.deliveryId, eventType: claim.eventType, attempt: claim.number, body: claim.body },
      { now: clock.now(), maxAnswerBytes: 0, signal },
    ),
  );
  return { durationMs: Math.round(clock.monotonicMs() - startedMs), ...judge(posted) };
}

/** 2xx is success; a redirect is not followed; 410 is for good. */
function judge(posted: Posted): Pick<AttemptOutcome, "status" | "error"> {
  if (posted.outcome === "failed") return { status: null, error: posted.failure };
  const { status } = posted;
  if (status >= 200 && status < 300) return { status, error: null };
  if (status === 410) return { status, error: "gone" };
  return { status, error: status >= 300 && status < 400 ? "redirected" : "refused" };
}
