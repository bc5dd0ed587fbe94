import type { Socket } from "node:net";
import type pg from "pg";
import type { Clock } from "../../../infra/kernel/clock.ts";

/** Longest that a farewell to a database may take. */
export const FAREWELL_MS = 2_000;

/** Drops the connection at once; statements that wait for the database are told this reason. */
export function drop(client: pg.Client, reason?: Error): void {
  (client.connection as unknown as { stream: Socket }).stream.destroy(reason);
}

/** Ends the connection. A database that does not close its side soon loses it all the same; never throws. */
export async function farewell(clock: Pick<Clock, "sleep">, client: pg.Client): Promise<void> {
  await soon(clock, client.end());
  drop(client);
}

/** Waits for a farewell, but not for long and not for its success: what is left of it ends with its connection. */
export async function soon(clock: Pick<Clock, "sleep">, said: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const done = said.catch(() => {}).finally(() => over.abort());
  await Promise.race([done, clock.sleep(FAREWELL_MS, over.signal)]);
}

/** The answer to a statement; a database that does not give one within `timeoutMs` loses its connection, and this throws. */
export async function answer<T>(
  client: pg.Client,
  { clock, timeoutMs }: { clock: Pick<Clock, "sleep">; timeoutMs: number },
  asked: Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const late = async () => {
    await clock.sleep(timeoutMs, over.signal);
    if (!over.signal.aborted) drop(client, new Error("the database did not answer in time"));
  };
  void late();
  try {
    return await asked;
  } finally {
    over.abort();
  }
}
