import { createHmac } from "node:crypto";
import type { WebhookSigner } from "../published.ts";

/** Receivers compute the same over the header `X-Nodus-Timestamp`, a dot and the raw body. */
export const webhookSigner: WebhookSigner = {
  sign(body: Uint8Array, secret: string, timestampSeconds: number): string {
    if (!Number.isSafeInteger(timestampSeconds) || timestampSeconds < 0)
      throw new RangeError("a timestamp is whole seconds since 1970");
    return createHmac("sha256", Buffer.from(secret, "utf8")).update(`${timestampSeconds}.`).update(body).digest("hex");
  },
};
