import type pg from "pg";

/** Whoever holds a lost connection has heard of it long before this. */
const GRACE_MS = 250;

/**
 * Takes connections back that were lost inside a transaction. The query builder returns a transaction's connection only
 * after a COMMIT or ROLLBACK that went well; when the server is gone neither does, and the connection would occupy its
 * place in the pool for good: a few restarts of the server, and every command would wait for ever.
 */
export function takeBackLostConnections(pool: pg.Pool): void {
  const held = new Set<pg.PoolClient>();
  pool.on("acquire", (client) => held.add(client));
  pool.on("release", (_error, client) => held.delete(client));
  pool.on("connect", (client) => {
    client.once("end", () => {
      setTimeout(() => held.has(client) && client.release(true), GRACE_MS).unref();
    });
  });
}
