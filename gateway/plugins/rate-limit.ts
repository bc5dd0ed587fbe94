import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import type { GatewayPlugin } from "./plugin.ts";

/** Counts requests by key. The composition root gives one whose store all gateways share. */
export interface RateLimit {
  /** Requests of one key in a second. */
  readonly perSecond: number;
  /** Counts one request; gives the milliseconds to wait when that was one too many, else 0. Rejects when the store fails. */
  consume(keyId: string): Promise<number>;
}

/** Counts in this process alone. */
export function memoryRateLimit(perSecond: number): RateLimit {
  const limiter = new RateLimiterMemory({ points: perSecond, duration: 1 });
  return {
    perSecond,
    async consume(keyId) {
      try {
        await limiter.consume(keyId);
        return 0;
      } catch (refusal) {
        if (refusal instanceof RateLimiterRes) return Math.max(1, refusal.msBeforeNext);
        throw refusal;
      }
    },
  };
}

/** Counts one request of a key; refused as `rate_limited` with the seconds to wait. */
export async function refuseAboveRate(rate: RateLimit, keyId: string): Promise<void> {
  const waitMs = await rate.consume(keyId);
  if (waitMs === 0) return;
  throw new Refused(COMMON.rate_limited, {
    message: `Too many requests with this key. The limit is ${rate.perSecond} in a second, this has more.`,
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
    extra: { limit: rate.perSecond, seen: `more than ${rate.perSecond}` },
  });
}

/** Bounds how often one key may ask. */
export function rateLimit(rate: RateLimit): GatewayPlugin {
  return {
    name: "rate-limit",
    async admit({ actor }) {
      if (actor) await refuseAboveRate(rate, actor.keyId);
    },
  };
}
