import type { Redis, RedisOptions } from "ioredis";
import type { Logger } from "../telemetry/logger.ts";
import { backoffMs, RECONNECT_BACKOFF } from "./backoff.ts";

/** What every connection to Redis does when it is lost, or when its server was made a replica of another one. */
export function redisOptions(): RedisOptions {
  return {
    retryStrategy: (failures) => backoffMs(RECONNECT_BACKOFF, failures, Math.random),
    // After a failover the address leads to another server; what was refused is sent again there.
    reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 2 : false),
    connectTimeout: 5_000,
    keepAlive: 10_000,
  };
}

/** Says by name when the server may drop keys: jobs would get lost until the database refills the queue. */
export async function warnOfEviction(redis: Redis, logger: Logger): Promise<void> {
  const policy = /^maxmemory_policy:(\S+)/m.exec(await redis.info("memory"))?.[1];
  if (policy !== undefined && policy !== "noeviction")
    logger.warn(
      { policy },
      `Redis has maxmemory-policy ${policy} and may drop jobs when its memory is full: set maxmemory-policy to noeviction`,
    );
}
