import type { Database } from "../infra/db/database.ts";
import { OUTBOX_TOPIC } from "../infra/db/outbox.ts";
import type { Clock } from "../infra/kernel/clock.ts";
import type { Wakeups } from "../infra/live/wakeups.ts";
import { backoffMs, RECONNECT_BACKOFF } from "../infra/queue/backoff.ts";
import type { JobQueue } from "../infra/queue/connection.ts";
import type { JobDefinition } from "../infra/queue/define-job.ts";
import type { Logger } from "../infra/telemetry/logger.ts";

export interface RelayOptions {
  db: Database;
  queue: Pick<JobQueue, "publish">;
  wakeups: Pick<Wakeups, "on">;
  /** Every job that may stand in the outbox; rows of other jobs are left for a process that knows them. */
  definitions: readonly JobDefinition<unknown>[];
  clock: Clock;
  logger: Logger;
  /** A number in [0, 1), for back-off. */
  random: () => number;
}

/** Carries jobs from the outbox to the queue. */
export interface Relay {
  /** Stops after the batch in hand. */
  close(): Promise<void>;
}

const BATCH_ROWS = 500;
/** Longest wait without a look, should a wake-up be lost. */
const IDLE_MS = 2_000;

/**
 * Starts a relay; several may run, each takes rows that no other holds. It looks when the outbox is announced, when the
 * next row is due, and every two seconds.
 */
export function startRelay(options: RelayOptions): Relay {
  const { clock, logger, random } = options;
  const closed = new AbortController();
  let dirty = false;
  let wake = () => {};
  const stopListening = options.wakeups.on(OUTBOX_TOPIC, () => {
    dirty = true;
    wake();
  });
  const sleep = async (ms: number): Promise<void> => {
    const woken = new AbortController();
    wake = () => woken.abort();
    if (!dirty) await clock.sleep(ms, AbortSignal.any([woken.signal, closed.signal]));
    wake = () => {};
  };
  const run = async (): Promise<void> => {
    let failures = 0;
    while (!closed.signal.aborted) {
      dirty = false; // before the look: a wake-up that comes during it counts
      try {
        const now = clock.now();
        const published = await publishDue(options, now);
        failures = 0;
        if (published < BATCH_ROWS) await sleep(await untilNextDueMs(options, now));
      } catch (err) {
        failures++;
        logger.error({ err, failures }, "the relay could not publish; its rows stay");
        await clock.sleep(backoffMs(RECONNECT_BACKOFF, failures, random), closed.signal);
      }
    }
  };
  const ended = run();
  return {
    close: () => {
      stopListening();
      closed.abort();
      return ended;
    },
  };
}

interface DueRow {
  id: string;
  job: string;
  payload: unknown;
  dueAt: Date;
}

/**
 * Publishes a batch of due rows and returns how many there were. Publishing happens inside the transaction that deletes
 * them, against the rule for commands, because the row locks are what keeps other relays off: if the queue fails or this
 * process dies before the commit, the rows are still there and are published again under the same ids.
 */
export function publishDue({ db, queue, definitions }: RelayOptions, now: Date): Promise<number> {
  const known = new Map(definitions.map((definition) => [definition.name, definition]));
  return db.command(async (tx) => {
    const rows = await tx.sql<DueRow>(
      `with due as materialized (
         select id from infra.outbox where due_at <= $1 and job = any($2) order by due_at limit $3 for update skip locked
       )
       delete from infra.outbox o using due where o.id = due.id returning o.id, o.job, o.payload, o.due_at as "dueAt"`,
      [now, [...known.keys()], BATCH_ROWS],
    );
    if (rows.length === 0) return 0;
    rows.sort((a, b) => a.dueAt.getTime() - b.dueAt.getTime());
    await queue.publish(
      rows.map(({ id, job, payload }) => ({ id, definition: known.get(job) as JobDefinition<unknown>, payload })),
    );
    return rows.length;
  });
}

/** How long until the next row is due that was not at `now`, at most `IDLE_MS`. */
async function untilNextDueMs({ db, definitions }: RelayOptions, now: Date): Promise<number> {
  const [row] = await db.sql<{ next: Date | null }>(
    "select min(due_at) as next from infra.outbox where due_at > $1 and job = any($2)",
    [now, definitions.map((definition) => definition.name)],
  );
  return row?.next ? Math.min(row.next.getTime() - now.getTime(), IDLE_MS) : IDLE_MS;
}
