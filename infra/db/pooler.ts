import pg from "pg";

/** A transaction pooler stands between the process and its database. */
export class PooledConnection extends Error {
  override readonly name = "PooledConnection";

  constructor() {
    super(
      "DATABASE_URL leads through a transaction pooler, which gives one session to many connections: " +
        "locks and notifications get lost there. Give the address of PostgreSQL itself, or of a pooler in session mode.",
    );
  }
}

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Throws `PooledConnection` when connections do not keep a session of their own. Two connections ask who serves them,
 * one of them before and while the other is in a transaction: servers that are shared or changed give a pooler away. A
 * busy pooler may go unnoticed; a direct connection is never taken for one.
 */
export async function refusePooler(url: string): Promise<void> {
  const [idle, busy] = [clientOf(url), clientOf(url)];
  try {
    await idle.connect();
    const before = await serverOf(idle);
    await busy.connect();
    await busy.query("begin");
    const other = await serverOf(busy);
    const after = await serverOf(idle);
    await busy.query("rollback");
    if (before === other || before !== after) throw new PooledConnection();
  } finally {
    await Promise.allSettled([idle.end(), busy.end()]);
  }
}

function clientOf(url: string): pg.Client {
  const client = new pg.Client({
    connectionString: url,
    application_name: "nodus start",
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  client.on("error", () => {}); // told by the query that meets it
  return client;
}

async function serverOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query("select pg_backend_pid() as pid");
  return rows[0].pid as number;
}
