import type { Socket } from "node:net";
import type pg from "pg";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { ConnectionFailure } from "../connection/connection-failure.ts";
import { type DatabaseAsk, type DatabaseDeps, openDatabase } from "../connection/open-database.ts";
import type { ExportClaim } from "./export-claim.ts";
import { ExportFailure } from "./export-failure.ts";

/** Longest that a farewell to the database may take. */
const FAREWELL_MS = 2_000;

/** A client of the database that an export reads, and how it is let go. */
export class QueryClient {
  readonly client: pg.Client;
  readonly #deps: DatabaseDeps;
  readonly #ask: DatabaseAsk;
  readonly #serverPid: number;

  private constructor(client: pg.Client, deps: DatabaseDeps, ask: DatabaseAsk, serverPid: number) {
    this.client = client;
    this.#deps = deps;
    this.#ask = ask;
    this.#serverPid = serverPid;
  }

  /** Throws `ExportFailure`. */
  static async open(deps: DatabaseDeps, claim: ExportClaim): Promise<QueryClient> {
    const { tenantId, connectionId, pin } = claim;
    const ask = { tenantId, connectionId, pin, timeoutMs: LIMITS.exportLoginMs, applicationName: "nodus-export" };
    const client = await openDatabase(deps, ask).catch((error: unknown) => {
      throw loginFailure(error);
    });
    try {
      const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
      return new QueryClient(client, deps, ask, rows[0]!.pid);
    } catch (error) {
      destroy(client);
      throw error;
    }
  }

  /** Ends the connection; a query that still runs is ended with it. */
  async close(): Promise<void> {
    await within(this.#deps.clock, this.client.end());
    destroy(this.client);
  }

  /**
   * Ends the query at the database and drops the connection. A database that is busy would notice a dropped connection
   * only when it next sends something, so it is told through another one; if that fails, the statement's own time-out is
   * what ends it.
   */
  async cancel(): Promise<void> {
    await within(this.#deps.clock, this.#tell());
    destroy(this.client);
  }

  async #tell(): Promise<void> {
    const other = await openDatabase(this.#deps, { ...this.#ask, timeoutMs: FAREWELL_MS });
    try {
      await other.query("select pg_cancel_backend($1)", [this.#serverPid]);
    } finally {
      await within(this.#deps.clock, other.end());
      destroy(other);
    }
  }
}

/** Waits for a farewell, but not for long and not for its success: what is left of it ends with its connection. */
async function within(clock: Clock, farewell: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const said = farewell.catch(() => {}).finally(() => over.abort());
  await Promise.race([said, clock.sleep(FAREWELL_MS, over.signal)]);
}

function destroy(client: pg.Client): void {
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}

function loginFailure(error: unknown): unknown {
  if (!(error instanceof ConnectionFailure)) return error;
  const inactive = error.reason === "credential_inactive" || error.reason === "credentials_rejected";
  return new ExportFailure(inactive ? "credential_inactive" : "connection_lost", error.message, error);
}
