import { Redis } from "ioredis";
import { tlsFailure } from "../net/tls-failure.ts";
import { UnreachableServer, wayFailure } from "../net/unreachable-server.ts";

const CONNECT_TIMEOUT_MS = 5_000;
const REFUSED_LOGIN = /^(WRONGPASS|NOAUTH|NOPERM|ERR invalid password)/;

/** Connects once to the server that REDIS_URL names; throws `UnreachableServer` that says what is wrong with it. */
export async function reachRedis(url: string): Promise<void> {
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
  });
  // The commands that fail say only that the connection is closed; why, the first of these says.
  let first: Error | null = null;
  redis.on("error", (error) => {
    first ??= error;
  });
  try {
    await redis.connect();
    await redis.ping();
  } catch (error) {
    const { host, port } = redis.options;
    throw new UnreachableServer("REDIS_URL", sentenceOf(first ?? (error as Error), `${host}:${port}`), error);
  } finally {
    redis.disconnect();
  }
}

function sentenceOf(error: Error, place: string): string {
  const { code } = error as { code?: string };
  const lost = wayFailure(error, place, "Redis");
  if (lost) return lost;
  if (tlsFailure(code ?? "") === "untrusted")
    return `no known authority signed the certificate of Redis at ${place} (${code}). Name the file with its authority's certificate in NODE_EXTRA_CA_CERTS.`;
  if (REFUSED_LOGIN.test(error.message))
    return `Redis at ${place} does not let this user in (${error.message}). Correct the user or the password.`;
  return `Redis at ${place} can't be used (${error.message}).`;
}
