import type { Logger } from "../telemetry/logger.ts";
import { openPostgresWakeups } from "./postgres-wakeups.ts";
import { openRedisWakeups } from "./redis-wakeups.ts";
import type { Wakeups } from "./wakeups.ts";

export interface WakeupSettings {
  /** A direct connection to the deployment's database. */
  databaseUrl: string;
  /** Moves wake-ups to Redis. */
  redisUrl?: string | undefined;
  logger: Logger;
}

/** Connects the process to the deployment's wake-ups. Rejects when the server cannot be reached. */
export function openWakeups({ databaseUrl, redisUrl, logger }: WakeupSettings): Promise<Wakeups> {
  return redisUrl ? openRedisWakeups(redisUrl, logger) : openPostgresWakeups(databaseUrl, logger);
}
