import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { Logger } from "../telemetry/logger.ts";
import { KEPT_EVENTS, type QueueBackend, workerOptions } from "./backend.ts";
import { backoffMs, RECONNECT_BACKOFF } from "./backoff.ts";

const PREFIX = "nodus";
const COMMAND_TIMEOUT_MS = 5_000;

/** Opens BullMQ's store in Redis. Keys start with `nodus:`; the server must not evict any (`noeviction`). */
export async function openRedisBackend(url: string, logger: Logger): Promise<QueueBackend> {
  const retryStrategy = (failures: number) => backoffMs(RECONNECT_BACKOFF, failures, Math.random);
  // Adding must fail soon, so that the relay keeps its rows; taking waits for the server as long as it takes.
  const adding = new Redis(url, { retryStrategy, maxRetriesPerRequest: 1, commandTimeout: COMMAND_TIMEOUT_MS });
  const taking = new Redis(url, { retryStrategy, maxRetriesPerRequest: null });
  for (const client of [adding, taking]) client.on("error", (err) => logger.warn({ err }, "the queue lost Redis"));
  const ping = async () => void (await adding.ping());
  try {
    await ping();
  } catch (error) {
    adding.disconnect();
    taking.disconnect();
    throw error;
  }
  return {
    kind: "redis",
    openQueue: (name) =>
      new Queue(name, { connection: adding, prefix: PREFIX, streams: { events: { maxLen: KEPT_EVENTS } } }),
    openWorker: (name, run, settings) =>
      new Worker(name, (job, token) => run(job, token ?? ""), {
        connection: taking,
        prefix: PREFIX,
        ...workerOptions(settings),
      }),
    ping,
    close: async () => {
      adding.disconnect();
      taking.disconnect();
    },
  };
}
