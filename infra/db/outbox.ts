import { Index } from "@mikro-orm/decorators/legacy";
import { newId } from "../kernel/ids.ts";
import type { JobDefinition } from "../queue/define-job.ts";
import { column, table } from "./attr.ts";
import type { Tx } from "./database.ts";

/** The topic that wakes the relay. */
export const OUTBOX_TOPIC = "outbox";

/**
 * A job that a command wants done, written in the command's own transaction. The relay publishes what is due and deletes
 * the row once the queue has it; a crash between the two publishes again under the same job id.
 */
@table("infra", "outbox")
@Index({ name: "outbox_due", properties: ["dueAt"] })
export class OutboxRow {
  @column.id() id!: string;
  @column.text() job!: string;
  @column.document<unknown>() payload!: unknown;
  /** Business time: not published before. */
  @column.at() dueAt!: Date;
  @column.at() createdAt!: Date;
}

/** One job of `enqueueAll`. */
export interface Enqueued<P> {
  payload: P;
  /** Not published before. */
  dueAt: Date;
}

/** A job as JSON, for a statement that appends it together with other rows by `appendJobsFrom`. */
export interface OutboxJob {
  readonly id: string;
  readonly job: string;
  readonly payload: unknown;
  readonly due_at: Date;
  readonly created_at: Date;
}

/** The id orders nothing, it only names the row. */
export function outboxJob<P>(job: JobDefinition<P>, payload: P, now: Date, dueAt: Date = now): OutboxJob {
  return { id: newId("outbox", now), job: job.name, payload, due_at: dueAt, created_at: now };
}

/** SQL that appends the jobs in `source.jobs`, a JSON array of `OutboxJob`. Whoever runs it wakes `OUTBOX_TOPIC`. */
export function appendJobsFrom(source: string): string {
  return `insert into infra.outbox (id, job, payload, due_at, created_at)
    select j.id, j.job, j.payload, j.due_at, j.created_at
    from ${source}, jsonb_to_recordset(${source}.jobs)
      as j(id text, job text, payload jsonb, due_at timestamptz, created_at timestamptz)`;
}

/** Appends a job; the id orders nothing, it only names the row. */
export function enqueue<P>(tx: Tx, job: JobDefinition<P>, payload: P, now: Date, dueAt: Date = now): Promise<void> {
  return enqueueAll(tx, job, [{ payload, dueAt }], now);
}

/** Appends several jobs of one kind in one statement. */
export async function enqueueAll<P>(
  tx: Tx,
  job: JobDefinition<P>,
  jobs: readonly Enqueued<P>[],
  now: Date,
): Promise<void> {
  if (jobs.length === 0) return;
  await tx.sql(
    `insert into infra.outbox (id, job, payload, due_at, created_at)
     select j.id, $1, j.payload, j.due_at, $4 from unnest($5::text[], $2::jsonb[], $3::timestamptz[]) as j(id, payload, due_at)`,
    [
      job.name,
      jobs.map(({ payload }) => JSON.stringify(payload)),
      jobs.map(({ dueAt }) => dueAt),
      now,
      jobs.map(() => newId("outbox", now)),
    ],
  );
  tx.wake(OUTBOX_TOPIC);
}
