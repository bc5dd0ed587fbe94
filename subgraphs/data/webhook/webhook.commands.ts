import { randomBytes } from "node:crypto";
import type { Database, Queryer } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { giveUpDeliveries } from "../delivery/give-up-deliveries.ts";
import type { SecretBox } from "../secret/secret-box.ts";
import { Webhook } from "./webhook.entity.ts";
import { WEBHOOK } from "./webhook.refusals.ts";
import { requireWebhookUrl } from "./webhook-url.ts";

export interface WebhookDeps {
  db: Database;
  box: SecretBox;
  exceptions: PrivateExceptions;
}

/** The place of a webhook's secret, which its ciphertext is bound to. */
export const webhookSealContext = (tenantId: string, version: number) => `webhook/${tenantId}/${version}`;

/**
 * Writes the team's one webhook and starts it. Without a secret, a new one is made. The secret is in this answer only:
 * no read gives it again.
 */
export function putWebhook(
  deps: WebhookDeps,
  actor: Actor,
  input: { url: string; secret?: string | null },
  now: Date,
): Promise<{ url: string; secret: string; enabled: true }> {
  return deps.db.command(async (tx) => {
    const url = requireWebhookUrl(input.url, deps.exceptions);
    const secret = requireSecret(input.secret ?? randomBytes(32).toString("hex"));
    await tx.sql("select pg_advisory_xact_lock(hashtextextended('data.webhook/' || $1, 0))", [actor.tenantId]);
    const before = await tx.row(Webhook, "where t.tenant_id = $1", [actor.tenantId]);
    const version = (before?.version ?? 0) + 1;
    const sealed = deps.box.seal(Buffer.from(secret, "utf8"), webhookSealContext(actor.tenantId, version));
    await tx.sql(
      `insert into data.webhook (tenant_id, url, version, master_key_id, wrapped_key, ciphertext, created_at, updated_at)
       values ($1, $2, $3, $4, $5, $6, $7, $7)
       on conflict (tenant_id) do update set url = excluded.url, version = excluded.version,
         master_key_id = excluded.master_key_id, wrapped_key = excluded.wrapped_key, ciphertext = excluded.ciphertext,
         updated_at = excluded.updated_at, disabled_at = null, failures = 0, failing_since = null`,
      [actor.tenantId, url, version, sealed.masterKeyId, sealed.wrappedKey, sealed.ciphertext, now],
    );
    return { url, secret, enabled: true as const };
  });
}

/** The team's webhook without its secret; refused as `webhook_not_configured`. */
export async function getWebhook(q: Queryer, tenantId: string): Promise<Webhook> {
  const webhook = await q.row(Webhook, "where t.tenant_id = $1", [tenantId]);
  if (!webhook) throw new Refused(WEBHOOK.webhook_not_configured);
  return webhook;
}

/** Where to send and what to sign with. */
export interface WebhookTarget {
  url: string;
  secret: string;
  /** Which writing of the webhook this is: what came of sending to it says nothing of a later one. */
  version: number;
}

/** The target of a team's deliveries; null when there is nothing to send to. */
export async function webhookTarget(q: Queryer, box: SecretBox, tenantId: string): Promise<WebhookTarget | null> {
  const webhook = await q.row(Webhook, "where t.tenant_id = $1 and t.disabled_at is null", [tenantId]);
  if (!webhook) return null;
  const secret = box.open(webhook, webhookSealContext(tenantId, webhook.version)).toString("utf8");
  return { url: webhook.url, secret, version: webhook.version };
}

/**
 * Deletes the team's webhook and its secret, and gives up what was still to be sent; refused as `webhook_not_configured`
 * when there is none. Deliveries are locked before the webhook, as a sender does.
 */
export function deleteWebhook(db: Database, actor: Actor, now: Date): Promise<void> {
  return db.command(async (tx) => {
    await giveUpDeliveries(tx, actor.tenantId, now);
    const gone = await tx.sql("delete from data.webhook where tenant_id = $1 returning tenant_id", [actor.tenantId]);
    if (gone.length === 0) throw new Refused(WEBHOOK.webhook_not_configured);
  });
}

/** A chosen secret must be hard to guess and easy to type: 16 to 256 printable ASCII characters. */
function requireSecret(secret: string): string {
  const { webhookSecretLengthMin: min, webhookSecretLengthMax: max } = LIMITS;
  if (secret.length < min || secret.length > max || !/^[\x20-\x7e]+$/.test(secret))
    throw new Refused(WEBHOOK.invalid_webhook_secret, { field: "/secret" });
  return secret;
}
