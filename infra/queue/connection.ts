import type { Queue } from "bullmq";
import type { Logger } from "../telemetry/logger.ts";
import type { QueueBackend } from "./backend.ts";
import type { JobDefinition } from "./define-job.ts";
import { openPostgresBackend } from "./postgres-backend.ts";
import { quietly } from "./quietly.ts";
import { openRedisBackend } from "./redis-backend.ts";

export interface QueueSettings {
  /** The deployment's database; jobs live in its schema `bullmq` unless Redis is given. */
  databaseUrl: string;
  /** Moves the jobs to Redis. */
  redisUrl?: string | undefined;
  logger: Logger;
}

/** One job on its way into the queue. */
export interface JobToPublish {
  /** Names the job within its queue: publishing the same id again while it is queued or running adds nothing. */
  id: string;
  definition: JobDefinition<unknown>;
  /** Ids only. */
  payload: unknown;
}

/** The queue of the deployment: the doorbell, never the truth. */
export interface JobQueue {
  readonly backend: QueueBackend;
  /** Adds jobs in bulk; when it rejects, any number of them may have been added. */
  publish(jobs: readonly JobToPublish[]): Promise<void>;
  /** Resolves when the store answers. */
  ping(): Promise<void>;
  /** Close workers first. */
  close(): Promise<void>;
}

/** Failed jobs are kept for a look at them: a week, at most a thousand in each queue. */
const KEPT_FAILURES = { age: 7 * 24 * 3600, count: 1_000 };

/** The bulk statement makes temporary tables, whose traces in the database's catalogue a few jobs are not worth. */
const SINGLY_UP_TO = 8;

/** Connects to the queue and brings its store up to date. Rejects when the store cannot be reached. */
export async function openQueue(settings: QueueSettings): Promise<JobQueue> {
  const { logger } = settings;
  const backend = settings.redisUrl
    ? await openRedisBackend(settings.redisUrl, logger)
    : await openPostgresBackend(settings.databaseUrl, logger);
  const queues = new Map<string, Queue>();
  const queueOf = (name: string): Queue => {
    let queue = queues.get(name);
    if (!queue) {
      queue = backend.openQueue(name);
      queues.set(name, queue);
      queue.on("error", quietly(logger, "the queue reported an error"));
    }
    return queue;
  };
  return {
    backend,
    publish: async (jobs) => {
      const byQueue = Map.groupBy(jobs, (job) => job.definition.queue);
      await Promise.all([...byQueue].map(([name, group]) => add(queueOf(name), group)));
    },
    ping: () => backend.ping(),
    close: async () => {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await backend.close();
    },
  };
}

async function add(queue: Queue, jobs: readonly JobToPublish[]): Promise<void> {
  const entries = jobs.map(({ id, definition, payload }) => ({
    name: definition.name,
    data: payload,
    opts: {
      jobId: id,
      attempts: definition.attempts,
      backoff: { type: "nodus" },
      removeOnComplete: true,
      removeOnFail: KEPT_FAILURES,
      stackTraceLimit: 0,
    },
  }));
  if (entries.length > SINGLY_UP_TO) await queue.addBulk(entries);
  else await Promise.all(entries.map((entry) => queue.add(entry.name, entry.data, entry.opts)));
}
