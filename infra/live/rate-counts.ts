import { Redis } from "ioredis";
import { RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import type { Database } from "../db/database.ts";
import { quietly } from "../queue/quietly.ts";
import { redisOptions } from "../queue/redis-options.ts";
import type { Logger } from "../telemetry/logger.ts";

/** What was counted of one key in the second that runs. */
export interface RateCount {
  /** Points of all processes, those just added included. */
  readonly points: number;
  /** Until the count begins anew. */
  readonly endsInMs: number;
}

/** Counts points by key and second, for all processes of a deployment. */
export interface RateCounts {
  /** Adds points to a key's count. Rejects when the store does not answer in time. */
  add(key: string, points: number): Promise<RateCount>;
  close(): Promise<void>;
}

/** A count that takes longer is worth less than the request that waits for it. */
const ANSWER_TIMEOUT_MS = 250;
/** Far more than any key's limit: the limit is judged by who counts. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** Counts in Redis. */
export function openRedisRateCounts(url: string, logger: Logger): RateCounts {
  const redis = new Redis(url, {
    ...redisOptions(),
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: ANSWER_TIMEOUT_MS,
  });
  redis.on("error", quietly(logger, "the store of rate limits lost Redis"));
  const limiter = new RateLimiterRedis({
    storeClient: redis,
    points: NO_LIMIT,
    duration: 1,
    keyPrefix: "nodus:rate",
    rejectIfRedisNotReady: true,
  });
  return {
    add: async (key, points) => {
      const counted = await limiter.consume(key, points);
      if (!(counted instanceof RateLimiterRes)) throw new Error("Redis did not count");
      return { points: counted.consumedPoints, endsInMs: Math.max(1, counted.msBeforeNext) };
    },
    close: async () => redis.disconnect(),
  };
}

/** Counts in the database, by its clock. */
export async function openPostgresRateCounts(db: Database): Promise<RateCounts> {
  await db.sql("delete from infra.rate_count where ends_at < clock_timestamp() - interval '1 day'");
  return {
    add: async (key, points) => {
      const [row] = await db.sql<{ points: number; endsInMs: number }>(ADD, [key, points]);
      return { points: row!.points, endsInMs: Math.max(1, row!.endsInMs) };
    },
    close: async () => {},
  };
}

const ADD = `insert into infra.rate_count as c (key, points, ends_at)
  values ($1, $2, clock_timestamp() + interval '1 second')
  on conflict (key) do update set
    points = case when c.ends_at <= clock_timestamp() then excluded.points else c.points + excluded.points end,
    ends_at = case when c.ends_at <= clock_timestamp() then excluded.ends_at else c.ends_at end
  returning points, ceil(extract(epoch from ends_at - clock_timestamp()) * 1000)::int as "endsInMs"`;
