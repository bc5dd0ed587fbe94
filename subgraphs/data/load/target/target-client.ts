import type pg from "pg";
import { LIMITS } from "../../../../infra/kernel/limits.ts";
import { drop, farewell } from "../../connection/farewell.ts";
import { type DatabaseDeps, openDatabase, type SecretVersionPin } from "../../connection/open-database.ts";

/** Which database, and with which version of its credential. */
export interface TargetName {
  tenantId: string;
  connectionId: string;
  pin: SecretVersionPin;
}

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
  const client = await openDatabase(deps, { ...ask, signal });
  const cut = () => drop(client, new Error("the work was cut off"));
  signal.addEventListener("abort", cut, { once: true });
  try {
    signal.throwIfAborted();
    return await work(client);
  } finally {
    signal.removeEventListener("abort", cut);
    await farewell(deps.clock, client);
  }
}
