import { isIP } from "node:net";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { mayReach } from "../../../infra/net/guarded-lookup.ts";
import type { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { WEBHOOK } from "./webhook.refusals.ts";

/**
 * The address in its normal spelling; refused unless it is https, without credentials, and not private by its looks. What
 * its name resolves to is judged with every delivery.
 */
export function requireWebhookUrl(text: string, exceptions: PrivateExceptions): string {
  if (text.length > LIMITS.webhookUrlLength) throw refused(`is longer than ${LIMITS.webhookUrlLength} characters`);
  if (!URL.canParse(text)) throw refused("is no URL");
  const url = new URL(text);
  if (url.protocol !== "https:") throw refused("does not start with https://");
  if (url.username !== "" || url.password !== "") throw refused("has credentials in it");
  if (!looksPublic(url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, ""), exceptions)) throw refused("is not public");
  url.hash = "";
  return url.href;
}

function refused(why: string): Refused {
  return new Refused(WEBHOOK.invalid_webhook_url, { field: "/url", message: `The webhook's address ${why}.` });
}

/** Names that no public server can have. */
const LOCAL_NAME = /^[^.]*$|\.(localhost|local|internal|home\.arpa)$/;

function looksPublic(host: string, exceptions: PrivateExceptions): boolean {
  if (isIP(host) !== 0) return mayReach(host, host, exceptions);
  return !LOCAL_NAME.test(host) || exceptions.allows(host, host);
}
