import type pg from "pg";
import type { Deployment } from "./deployment.ts";
import { until } from "./until.ts";

type Asked = Pick<Deployment<never>, "sql">;

/** The process id of a client's session. */
async function pidOf(client: pg.Client): Promise<number> {
  return (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;
}

/**
 * The session that waits for what a client's open transaction holds, once one has waited for `forMs`. Asked outside that
 * transaction, which would see the same each time.
 */
export async function sessionBlockedBy(asked: Asked, client: pg.Client, { forMs = 0 } = {}): Promise<number> {
  const values = [await pidOf(client), forMs / 1_000];
  const blocked = `select pid from pg_stat_activity where $1 = any(pg_blocking_pids(pid))
    and clock_timestamp() - query_start >= make_interval(secs => $2)`;
  const waiting = async () => (await asked.sql<{ pid: number }>(blocked, values))[0];
  return (await until("a session waits for what is held", waiting, { everyMs: 5 })).pid;
}

/** What a session is at, such as `idle in transaction`; null when it has ended. */
export async function sessionState(asked: Asked, pid: number): Promise<string | null> {
  const [session] = await asked.sql<{ state: string }>("select state from pg_stat_activity where pid = $1", [pid]);
  return session?.state ?? null;
}
