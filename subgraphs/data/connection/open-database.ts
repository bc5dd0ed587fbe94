import pg from "pg";
import type { Database, Queryer } from "../../../infra/db/database.ts";
import type { Clock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { requirePublicLiteral } from "../../../infra/net/guarded-lookup.ts";
import type { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { openVersion } from "../secret/open-version.ts";
import type { SecretBox } from "../secret/secret-box.ts";
import { Connection } from "./connection.entity.ts";
import { ConnectionFailure, socketReason } from "./connection-failure.ts";
import { type DatabaseLogin, readCredential } from "./credential-shape.ts";
import { GuardedConnection } from "./guarded-connection.ts";
import { ProtocolViolation } from "./message-guard.ts";

/** A version of a secret. */
export interface SecretVersionPin {
  secretId: string;
  version: number;
}

export interface DatabaseDeps {
  db: Database;
  secretBox: SecretBox;
  /** Private hosts that the operator opened. */
  exceptions: PrivateExceptions;
  clock: Clock;
}

export interface DatabaseAsk {
  tenantId: string;
  connectionId: string;
  /** The version that was pinned when the use was admitted; it may have been replaced since. */
  pin: SecretVersionPin;
  /** How long the name look-up, TLS and the login may take together. */
  timeoutMs: number;
  applicationName: string;
  /** Gives up when it aborts before the login; later it has no effect. */
  signal?: AbortSignal;
}

/**
 * A client that is logged in to a connection's database with the pinned credential, over TLS with certificate and host
 * verified. A connection that was deleted since still opens. The caller ends the client. Throws `ConnectionFailure`.
 */
export async function openDatabase(deps: DatabaseDeps, ask: DatabaseAsk): Promise<pg.Client> {
  const login = await pinnedLogin(deps.db, deps.secretBox, ask);
  return logIn(login, deps, ask);
}

async function pinnedLogin(q: Queryer, box: SecretBox, ask: DatabaseAsk): Promise<DatabaseLogin> {
  const { tenantId, connectionId, pin } = ask;
  const connection = await q.row(Connection, "where t.tenant_id = $1 and t.id = $2", [tenantId, connectionId]);
  const text = connection && (await openVersion(q, box, { tenantId, ...pin }));
  if (!text) throw new ConnectionFailure("credential_inactive");
  const credential = readCredential(connection.kind, text);
  if (credential.kind !== "database") throw new Error(`the connection ${connectionId} leads to no database`);
  return credential.login;
}

/** Logs in to a database; see `openDatabase`. */
export async function logIn(
  login: DatabaseLogin,
  { exceptions, clock }: Pick<DatabaseDeps, "exceptions" | "clock">,
  { timeoutMs, applicationName, signal }: Pick<DatabaseAsk, "timeoutMs" | "applicationName" | "signal">,
): Promise<pg.Client> {
  const ssl = { rejectUnauthorized: true, minVersion: "TLSv1.2", ...(login.caPem ? { ca: login.caPem } : {}) } as const;
  const connection = new GuardedConnection({ exceptions, ssl });
  const config: pg.ClientConfig & { connection: pg.Connection } = {
    host: login.host,
    port: login.port,
    user: login.user,
    password: login.password,
    database: login.database,
    client_encoding: "UTF8",
    application_name: applicationName,
    // The driver would take this one from the platform's environment.
    sslnegotiation: "postgres",
    ssl,
    enableChannelBinding: login.channelBinding !== "disable",
    connectionTimeoutMillis: timeoutMs,
    connection,
  };
  const client = new pg.Client(config);
  client.on("error", () => {}); // a connection that breaks later is told by the statement that is under way, or by the next
  const cut = () => connection.cut(new Error("the login was cut off"));
  signal?.addEventListener("abort", cut, { once: true });
  try {
    signal?.throwIfAborted();
    requirePublicLiteral(login.host, exceptions);
    const bound = offersBinding(client);
    await connection.socket.limit(LIMITS.connectionLoginBytes, clock, client.connect());
    if (login.channelBinding === "require" && !bound()) throw new ConnectionFailure("credentials_rejected");
    return client;
  } catch (error) {
    connection.cut(); // nobody uses it, and the database need not close its side
    throw error instanceof ConnectionFailure ? error : new ConnectionFailure(loginReason(error));
  } finally {
    signal?.removeEventListener("abort", cut);
  }
}

/** Whether the server offered a login that is bound to the channel; the driver then takes it. */
function offersBinding(client: pg.Client): () => boolean {
  let offered = false;
  client.connection.once("authenticationSASL", ({ mechanisms }: { mechanisms: string[] }) => {
    offered = mechanisms.includes("SCRAM-SHA-256-PLUS");
  });
  return () => offered;
}

/** SQLSTATE class 28 is a refused login; 3D000, a database that is not there, and the like come after it. */
function loginReason(error: unknown): ConnectionFailure["reason"] {
  const { code, message } = error as { code?: unknown; message?: string };
  const fromSocket = socketReason(error);
  if (error instanceof ProtocolViolation) return "database_refused";
  if (typeof code === "string" && /^[0-9][0-9A-Z]{4}$/.test(code))
    return code.startsWith("28") ? "credentials_rejected" : "database_refused";
  if (fromSocket) return fromSocket;
  // The driver tells these apart by their texts alone.
  if (/timeout expired/.test(message ?? "")) return "timeout";
  if (/SSL connection/.test(message ?? "")) return "tls_untrusted";
  if (/^SASL/.test(message ?? "")) return "credentials_rejected";
  return "unreachable";
}
