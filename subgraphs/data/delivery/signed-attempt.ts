import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { PostAsk } from "../../../infra/net/post-https.ts";
import type { WebhookTarget } from "../webhook/webhook.commands.ts";
import { webhookSigner } from "../webhook/webhook-signer.ts";

/** What is sent. */
export interface SignedMessage {
  deliveryId: string;
  eventType: string;
  /** From 1; only the header tells it, the body is the same each time. */
  attempt: number;
  body: string;
}

/** A message to a team's webhook as it leaves now: receivers refuse a signature that is older than five minutes. */
export function signedAttempt(
  { url, secret }: Pick<WebhookTarget, "url" | "secret">,
  message: SignedMessage,
  { now, maxAnswerBytes, signal }: { now: Date; maxAnswerBytes: number; signal: AbortSignal },
): PostAsk {
  const body = Buffer.from(message.body, "utf8");
  const timestampSeconds = Math.floor(now.getTime() / 1000);
  return {
    url,
    headers: {
      "content-type": "application/json",
      "user-agent": "nodus-webhook",
      "x-nodus-timestamp": String(timestampSeconds),
      "x-nodus-signature": webhookSigner.sign(body, secret, timestampSeconds),
      "x-nodus-attempt": String(message.attempt),
      "x-nodus-delivery": message.deliveryId,
      "x-nodus-event": message.eventType,
    },
    body,
    timeoutMs: LIMITS.webhookAnswerMs,
    maxAnswerBytes,
    signal,
  };
}
