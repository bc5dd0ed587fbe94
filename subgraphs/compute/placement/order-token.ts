import { createHash, createHmac } from "node:crypto";

/**
 * The one-time token of an order: HMAC-SHA256 of its id under the deployment's runner key, in 43 URL-safe characters.
 * It can be made again at any time, so that a launch can be repeated without keeping the token anywhere.
 */
export function orderToken(runnerKey: Uint8Array, orderId: string): string {
  return createHmac("sha256", runnerKey).update(`nodus order token\n${orderId}`).digest("base64url");
}

/** What is stored of a token or session: SHA-256 of its text, in hex. */
export function hashToken(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
