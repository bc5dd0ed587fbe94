import { createHmac, timingSafeEqual } from "node:crypto";

/** Seconds that a signature is good for, and that the two clocks may differ by. */
const TOLERANCE_SECONDS = 300;

/**
 * Whether a request is from Nodus and fresh.
 *
 * @param secret what the PUT of the webhook answered
 * @param timestamp header `X-Nodus-Timestamp`, if there is one
 * @param signature header `X-Nodus-Signature`, if there is one
 * @param body the bytes as they arrived, before any parsing
 */
export function isFromNodus(
  secret: string,
  timestamp: string | null | undefined,
  signature: string | null | undefined,
  body: Uint8Array,
  nowSeconds: number = Date.now() / 1000,
): boolean {
  if (timestamp == null || signature == null) return false;
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(nowSeconds - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const expected = createHmac("sha256", Buffer.from(secret, "utf8")).update(`${timestamp}.`).update(body).digest("hex");
  const given = Buffer.from(signature, "utf8");
  const wanted = Buffer.from(expected, "utf8");
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
