import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestRedis } from "../support/redis.ts";
import type { Victim } from "./victims.ts";

/**
 * What becomes of a Redis: it is killed and comes back with what it had written to disk, it is emptied while it serves,
 * or it is killed and an empty one takes its place.
 */
export const REDIS_VICTIMS = ["redis", "emptied redis", "replaced redis"] as const;
export type RedisVictim = (typeof REDIS_VICTIMS)[number];

/** Longest time without any Redis. */
const ABSENT_MS = 3_000;

export function isRedisVictim(name: string): name is RedisVictim {
  return (REDIS_VICTIMS as readonly string[]).includes(name);
}

/** `ready` resolves once everything that needs Redis has it again. */
export function redisVictim(
  name: RedisVictim,
  redis: TestRedis,
  random: (below: number) => number,
  ready: () => Promise<void>,
): Victim {
  if (name === "emptied redis") return emptied(redis, ready);
  return {
    strike: () => void redis.kill(), // the signal is sent in this turn
    recover: async () => {
      await redis.kill();
      await sleep(random(ABSENT_MS));
      await (name === "redis" ? redis.start() : redis.startEmpty());
      await ready();
    },
  };
}

/** The connection is there before the moment comes, so that nothing but the command's bytes is left to send. */
function emptied(redis: TestRedis, ready: () => Promise<void>): Victim {
  const socket = net.connect(redis.port, "127.0.0.1");
  const answered = new Promise<string>((resolve, reject) => {
    socket.once("data", (bytes) => resolve(bytes.toString()));
    socket.once("error", reject);
  });
  answered.catch(() => {}); // told when it is waited for
  return {
    strike: () => void socket.write("FLUSHALL\r\n"),
    recover: async () => {
      const answer = await answered;
      socket.destroy();
      if (!answer.startsWith("+OK")) throw new Error(`Redis was not emptied: ${answer}`);
      await ready();
    },
  };
}
