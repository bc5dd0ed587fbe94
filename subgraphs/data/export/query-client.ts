import type pg from "pg";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { ConnectionFailure } from "../connection/connection-failure.ts";
import { answer, drop, FAREWELL_MS, farewell, soon } from "../connection/farewell.ts";
import { ProtocolViolation } from "../connection/message-guard.ts";
import { type DatabaseAsk, type DatabaseDeps, openDatabase } from "../connection/open-database.ts";
import type { ExportClaim } from "./export-claim.ts";
import { ExportFailure } from "./export-failure.ts";

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

  /** Gives up as soon as the signal aborts. Throws `ExportFailure`, and what the database says to the first query. */
  static async open(deps: DatabaseDeps, claim: ExportClaim, signal: AbortSignal): Promise<QueryClient> {
    const { tenantId, connectionId, pin } = claim;
    const ask = { tenantId, connectionId, pin, timeoutMs: LIMITS.exportLoginMs, applicationName: "nodus-export" };
    const client = await openDatabase(deps, { ...ask, signal }).catch((error: unknown) => {
      throw loginFailure(error);
    });
    const cut = () => drop(client, new Error("the export was cut off"));
    signal.addEventListener("abort", cut, { once: true });
    try {
      signal.throwIfAborted();
      return new QueryClient(client, deps, ask, await serverPid(client, deps));
    } catch (error) {
      cut();
      throw error;
    } finally {
      signal.removeEventListener("abort", cut);
    }
  }

  /** Ends the connection; a query that still runs is ended with it. */
  async close(): Promise<void> {
    await farewell(this.#deps.clock, this.client);
  }

  /**
   * Ends the query at the database and drops the connection. A database that is busy would notice a dropped connection
   * only when it next sends something, so it is told through another one; if that fails, the statement's own time-out is
   * what ends it.
   */
  async cancel(): Promise<void> {
    await soon(this.#deps.clock, this.#tell());
    drop(this.client);
  }

  async #tell(): Promise<void> {
    const other = await openDatabase(this.#deps, { ...this.#ask, timeoutMs: FAREWELL_MS });
    try {
      const asked = other.query("select pg_cancel_backend($1)", [this.#serverPid]);
      await answer(other, { clock: this.#deps.clock, timeoutMs: FAREWELL_MS }, asked);
    } finally {
      await farewell(this.#deps.clock, other);
    }
  }
}

/** The process of the database that serves this client. */
async function serverPid(client: pg.Client, { clock }: DatabaseDeps): Promise<number> {
  const asked = client.query<{ pid: unknown }>("select pg_backend_pid() as pid");
  const { rows } = await answer(client, { clock, timeoutMs: LIMITS.exportAnswerMs }, asked);
  const pid = rows[0]?.pid;
  if (typeof pid !== "number") throw new ProtocolViolation("a process without a number");
  return pid;
}

function loginFailure(error: unknown): unknown {
  if (!(error instanceof ConnectionFailure)) return error;
  const inactive = error.reason === "credential_inactive" || error.reason === "credentials_rejected";
  return new ExportFailure(inactive ? "credential_inactive" : "connection_lost", error.message, error);
}
