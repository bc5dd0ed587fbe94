import { isIP, isIPv4 } from "node:net";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { WEBHOOK } from "./webhook.refusals.ts";

/** Says of a host name or address whether the operator lets it be reached although it is private. */
export type AllowsPrivateHost = (host: string) => boolean;

/**
 * The address in its normal spelling; refused unless it is https, without credentials, and not private by its looks. What
 * its name resolves to is looked at again with every delivery.
 */
export function requireWebhookUrl(text: string, allowed: AllowsPrivateHost): string {
  if (text.length > LIMITS.webhookUrlLength) throw refused(`is longer than ${LIMITS.webhookUrlLength} characters`);
  if (!URL.canParse(text)) throw refused("is no URL");
  const url = new URL(text);
  if (url.protocol !== "https:") throw refused("does not start with https://");
  if (url.username !== "" || url.password !== "") throw refused("has credentials in it");
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  if (looksPrivate(host) && !allowed(host)) throw refused("is not public");
  url.hash = "";
  return url.href;
}

function refused(why: string): Refused {
  return new Refused(WEBHOOK.invalid_webhook_url, { field: "/url", message: `The webhook's address ${why}.` });
}

const PRIVATE_IPV4 =
  /^(0|10|127|22[4-9]|2[3-5]\d)\.|^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|^169\.254\.|^172\.(1[6-9]|2\d|3[01])\.|^192\.(0\.0|168)\.|^198\.1[89]\./;

/** Only globally routed unicast (2000::/3) counts as public among IPv6 addresses. */
function looksPrivate(host: string): boolean {
  if (isIPv4(host)) return PRIVATE_IPV4.test(host);
  if (isIP(host) === 6) return !/^[23][0-9a-f]{3}:/.test(host);
  return !host.includes(".") || /\.(localhost|local|internal|home\.arpa)$/.test(host);
}
