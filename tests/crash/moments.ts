import pg from "pg";
import { within } from "../support/workloads.ts";

/** Steps of a workload's life that something can be killed right after: the commit has happened, what follows has not. */
export const MOMENTS = [
  "accepted",
  "provisioning",
  "launched",
  "running",
  "interrupted",
  "recovering",
  "cancel_requested",
  "cancelled",
  "completed",
  "failed",
  "gone",
  "log_committed",
  "resources_released",
  "settled",
] as const;
export type Moment = (typeof MOMENTS)[number];

const CHANNEL = "nodus_test_moment";
/** A function that tells of a row, with its id: equal notifications of one transaction are sent once. */
const teller = (name: string, what: string) => `
  create or replace function public.${name}() returns trigger language plpgsql as
    $$ begin perform pg_notify('${CHANNEL}', ${what} || ' ' || new.id); return new; end $$`;

/** One after another, each its own transaction: the work that goes on locks the same tables in its own order. */
const HEARD = [
  teller("nodus_test_event", "substr(new.type, 10)"),
  teller("nodus_test_attempt", "case new.state when 'booting' then 'launched' else new.state end"),
  teller("nodus_test_log", "'log_committed'"),
  `create or replace trigger nodus_test_event after insert on compute.workload_event
    for each row execute function public.nodus_test_event()`,
  `create or replace trigger nodus_test_attempt after update of state on compute.attempt
    for each row when (new.state <> old.state) execute function public.nodus_test_attempt()`,
  `create or replace trigger nodus_test_log after update of log_committed_at on compute.placement
    for each row when (old.log_committed_at is null and new.log_committed_at is not null)
    execute function public.nodus_test_log()`,
];

/** Hears of the moments of work on a database within a millisecond of their commit. */
export class Listener {
  readonly #connection: pg.Client;
  readonly #reached: string[] = [];
  #onReached: () => void = () => {};

  private constructor(connection: pg.Client) {
    this.#connection = connection;
    connection.on("error", () => {}); // its server may be the next to be killed
    connection.on("notification", ({ payload }) => {
      this.#reached.push(payload!.split(" ")[0]!);
      this.#onReached();
    });
  }

  static async open({ databaseUrl }: { readonly databaseUrl: string }): Promise<Listener> {
    const connection = new pg.Client({ connectionString: databaseUrl });
    const listener = new Listener(connection);
    await connection.connect();
    for (const statement of HEARD) await connection.query(statement);
    await connection.query(`listen ${CHANNEL}`);
    return listener;
  }

  /** Calls `strike` in the same turn in which the moment is heard of for the nth time; true if it came in time. */
  async strikeAt(moment: Moment, nth: number, strike: () => void, timeoutMs: number): Promise<boolean> {
    const struck = new Promise<void>((resolve) => {
      this.#onReached = () => {
        if (this.#reached.filter((reached) => reached === moment).length < nth) return;
        this.#onReached = () => {};
        strike();
        resolve();
      };
      this.#onReached();
    });
    try {
      await within(struck, timeoutMs, `${moment} is reached ${nth} times`);
      return true;
    } catch {
      this.#onReached = () => {};
      return false; // this round's work had no such moment
    }
  }

  async close(): Promise<void> {
    await this.#connection.end().catch(() => {}); // may be cut off by now
  }
}
