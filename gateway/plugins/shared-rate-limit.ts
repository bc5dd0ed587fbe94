import type { FastifyBaseLogger } from "fastify";
import type { Clock } from "../../infra/kernel/clock.ts";
import type { RateCounts } from "../../infra/live/rate-counts.ts";
import { BoundedMap } from "../bounded-map.ts";
import { memoryRateLimit, type RateLimit } from "./rate-limit.ts";

export interface SharedRateLimitOptions {
  perSecond: number;
  /** Counts for all gateways. */
  counts: Pick<RateCounts, "add">;
  clock: Clock;
  log: FastifyBaseLogger;
}

/** Parts of the limit that a gateway takes at once: few trips to the store, and little lies unused with other gateways. */
const PARTS = 20;
/** After a failure the store is left alone for this long. */
const STORE_REST_MS = 1_000;
const MAX_KEYS = 10_000;

/** What this gateway holds of one key's limit. Times are monotonic. */
interface Share {
  left: number;
  endsAtMs: number;
  /** The limit was reached: nothing is asked for before. */
  refusedUntilMs: number;
  /** A trip to the store that is under way. */
  taking: Promise<void> | null;
}

/**
 * One limit over all gateways. Each takes a twentieth of it from the store at a time and counts that down by itself, so
 * most requests cost no trip. While the store does not answer, each gateway counts by itself against the whole limit: a
 * lost store neither stops requests nor leaves them unbounded.
 */
export function sharedRateLimit({ perSecond, counts, clock, log }: SharedRateLimitOptions): RateLimit {
  const part = Math.max(1, Math.floor(perSecond / PARTS));
  const shares = new BoundedMap<string, Share>(MAX_KEYS);
  const alone = memoryRateLimit(perSecond);
  let storeRestsUntilMs = Number.NEGATIVE_INFINITY;

  const take = async (keyId: string, share: Share): Promise<void> => {
    try {
      const { points, endsInMs } = await counts.add(keyId, part);
      const endsAtMs = clock.monotonicMs() + endsInMs;
      share.left = Math.max(0, Math.min(part, perSecond - (points - part)));
      share.endsAtMs = endsAtMs;
      if (share.left === 0) share.refusedUntilMs = endsAtMs;
    } catch (err) {
      storeRestsUntilMs = clock.monotonicMs() + STORE_REST_MS;
      log.warn({ err }, "the store of rate limits does not answer; this gateway counts by itself");
    }
  };

  return {
    perSecond,
    async consume(keyId) {
      const share = shares.get(keyId) ?? { left: 0, endsAtMs: 0, refusedUntilMs: 0, taking: null };
      shares.set(keyId, share);
      for (;;) {
        const nowMs = clock.monotonicMs();
        if (nowMs < storeRestsUntilMs) return alone.consume(keyId);
        if (nowMs < share.refusedUntilMs) return Math.ceil(share.refusedUntilMs - nowMs);
        if (share.left > 0 && nowMs < share.endsAtMs) {
          share.left--;
          return 0;
        }
        share.taking ??= take(keyId, share).finally(() => {
          share.taking = null;
        });
        await share.taking;
      }
    },
  };
}
