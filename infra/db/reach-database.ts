import pg from "pg";
import { tlsFailure } from "../net/tls-failure.ts";
import { UnreachableServer, wayFailure } from "../net/unreachable-server.ts";

const CONNECT_TIMEOUT_MS = 10_000;

/** Connects once to the database that DATABASE_URL names; throws `UnreachableServer` that says which part of it is wrong. */
export async function reachDatabase(url: string): Promise<void> {
  const client = open(url);
  client.on("error", () => {}); // told by the connect or query that meets it
  try {
    await client.connect();
    await client.query("select 1");
  } catch (error) {
    throw new UnreachableServer("DATABASE_URL", sentenceOf(error, client), error);
  } finally {
    await client.end().catch(() => {}); // there may be nothing to end
  }
}

/** Files that the address names, such as `sslrootcert`, are read here. */
function open(url: string): pg.Client {
  try {
    return new pg.Client({
      connectionString: url,
      application_name: "nodus start",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    });
  } catch (error) {
    throw new UnreachableServer("DATABASE_URL", `it can't be used (${(error as Error).message}).`, error);
  }
}

function sentenceOf(error: unknown, { host, port, user, database }: pg.Client): string {
  const place = `${host}:${port}`;
  const { code, message } = error as { code?: string; message: string };
  const lost = wayFailure(error, place, "PostgreSQL");
  if (lost) return lost;
  const tls = tlsFailure(code ?? "");
  if (tls === "untrusted")
    return `no known authority signed the certificate of PostgreSQL at ${place} (${code}). Name the file with its authority's certificate as sslrootcert.`;
  if (tls === "other_host")
    return `the certificate of PostgreSQL at ${place} is for another host (${message}). Use a name that it is for.`;
  // Without a password in the address the driver gives up before the server is asked.
  if (code === "28P01" || code === "28000" || message.startsWith("SASL"))
    return `PostgreSQL at ${place} does not let user "${user}" in (${message}). Correct the user or the password.`;
  if (code === "3D000") return `PostgreSQL at ${place} has no database "${database}". Create it, or correct the name.`;
  return `PostgreSQL at ${place} can't be used (${message}).`;
}
