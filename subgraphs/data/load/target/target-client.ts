import type { Socket } from "node:net";
import type pg from "pg";
import { LIMITS } from "../../../../infra/kernel/limits.ts";
import { type DatabaseDeps, openDatabase, type SecretVersionPin } from "../../connection/open-database.ts";

/** Which database, and with which version of its credential. */
export interface TargetName {
  tenantId: string;
  connectionId: string;
  pin: SecretVersionPin;
}

/** Longest that a farewell to the database may take. */
const FAREWELL_MS = 2_000;

/**
 * Works with a client of a team's database; the connection ends with the work, and at once when the signal aborts: the
 * database then undoes what was not committed. Throws `ConnectionFailure` when it is not let in.
 */
export async function withTarget<T>(
  deps: DatabaseDeps,
  { tenantId, connectionId, pin }: TargetName,
  signal: AbortSignal,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const ask = { tenantId, connectionId, pin, timeoutMs: LIMITS.loadLoginMs, applicationName: "nodus-load" };
  const client = await openDatabase(deps, ask);
  const cut = () => destroy(client);
  signal.addEventListener("abort", cut, { once: true });
  try {
    signal.throwIfAborted();
    return await work(client);
  } finally {
    signal.removeEventListener("abort", cut);
    await farewell(deps, client);
  }
}

/** Waits for the end, but not for long and not for its success: what is left of it ends with its connection. */
async function farewell({ clock }: DatabaseDeps, client: pg.Client): Promise<void> {
  const over = new AbortController();
  const said = client
    .end()
    .catch(() => {})
    .finally(() => over.abort());
  await Promise.race([said, clock.sleep(FAREWELL_MS, over.signal)]);
  destroy(client);
}

function destroy(client: pg.Client): void {
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}
