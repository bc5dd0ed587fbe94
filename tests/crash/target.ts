import type { Deployment } from "../support/deployment.ts";
import type { Platform } from "../support/platform.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import type { TestRedis } from "../support/redis.ts";
import { apartVictim, type ProcessVictim } from "./process-victims.ts";
import { isRedisVictim, type RedisVictim, redisVictim } from "./redis-victims.ts";
import { aimAt, isReady, type PlatformVictim, type Victim } from "./victims.ts";

export type VictimName = PlatformVictim | ProcessVictim | RedisVictim;

/** What is lived on and killed: a platform in one process, or one whose roles are processes of their own. */
export interface Target {
  readonly admin: PlatformClient;
  readonly databaseUrl: string;
  readonly dataDir: string;
  sql<T>(text: string, values?: unknown[]): Promise<T[]>;
  /** Looks for a victim while it lives; `mark` is a word of the guests that may be hit. */
  aim(victim: VictimName, mark: string, random: (below: number) => number): Victim;
  /** The process that holds guests now. */
  hostAgentPid(): number;
  lastOutput(): string;
}

/** `redis` is what the platform was given by `REDIS_URL`, if anything. */
export function inOneProcess(platform: Platform, redis: TestRedis | null = null): Target {
  return {
    get admin() {
      return platform.admin;
    },
    get databaseUrl() {
      return platform.databaseUrl;
    },
    dataDir: platform.dataDir,
    sql: (text, values) => platform.sql(text, values),
    aim: (victim, mark, random) =>
      isRedisVictim(victim)
        ? redisVictim(victim, needed(redis), random, () => isReady(platform.admin))
        : aimAt(victim as PlatformVictim, platform, mark, random),
    hostAgentPid: () => platform.hostAgent().pid,
    lastOutput: () => platform.lastOutput(),
  };
}

export function apart(deployment: Deployment, redis: TestRedis | null = null): Target {
  const allReady = async () => void (await Promise.all(deployment.names.map((name) => deployment.ready(name))));
  return {
    admin: deployment.admin(),
    databaseUrl: deployment.environment().DATABASE_URL!,
    dataDir: deployment.dataDir,
    sql: (text, values) => deployment.sql(text, values),
    aim: (victim, mark, random) =>
      isRedisVictim(victim)
        ? redisVictim(victim, needed(redis), random, allReady)
        : apartVictim(victim as ProcessVictim, deployment, mark, random),
    hostAgentPid: () => deployment.hostAgents()[0]!.pid,
    lastOutput: () => deployment.lastOutput(),
  };
}

function needed(redis: TestRedis | null): TestRedis {
  if (!redis) throw new Error("this layout has no Redis that could die");
  return redis;
}
