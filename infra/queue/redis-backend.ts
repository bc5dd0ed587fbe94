import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { Logger } from "../telemetry/logger.ts";
import { KEPT_EVENTS, type QueueBackend, workerOptions } from "./backend.ts";
import { quietly } from "./quietly.ts";
import { redisOptions, warnOfEviction } from "./redis-options.ts";

const PREFIX = "nodus";
const COMMAND_TIMEOUT_MS = 5_000;

/** Opens BullMQ's store in Redis. Keys start with `nodus:`; the server must not evict any (`noeviction`). */
export async function openRedisBackend(url: string, logger: Logger): Promise<QueueBackend> {
  // Adding must fail soon, so that the relay keeps its rows; taking waits for the server as long as it takes.
  const adding = new Redis(url, { ...redisOptions(), maxRetriesPerRequest: 1, commandTimeout: COMMAND_TIMEOUT_MS });
  const taking = new Redis(url, { ...redisOptions(), maxRetriesPerRequest: null });
  for (const client of [adding, taking]) client.on("error", quietly(logger, "the queue lost Redis"));
  const ping = async () => void (await adding.ping());
  try {
    await ping();
    await warnOfEviction(adding, logger);
  } catch (error) {
    adding.disconnect();
    taking.disconnect();
    throw error;
  }
  return {
    kind: "redis",
    openQueue: (name) =>
      new Queue(name, {
        ...{ connection: adding, prefix: PREFIX, streams: { events: { maxLen: KEPT_EVENTS } } },
        // A queue may be used for the first time while Redis is away, and BullMQ would remember for good that its
        // questions at the start were not answered. Workers ask for the version.
        ...{ skipWaitingForReady: true, skipVersionCheck: true },
      }),
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
