/** How a connection to PostgreSQL may be secured. The driver takes any other word, too, and means something by it. */
const SSL_MODES = new Set(["disable", "prefer", "require", "verify-ca", "verify-full", "no-verify"]);
const SSL_PARAMETERS = ["sslmode", "sslrootcert", "sslcert", "sslkey", "sslnegotiation", "ssl", "uselibpqcompat"];

/**
 * What is wrong with the parameters of DATABASE_URL, as a sentence; null when nothing is. The driver passes over a
 * parameter that it does not know: `sslmod=verify-full` would be a connection in plain text.
 */
export function parameterProblem(databaseUrl: string): string | null {
  const parameters = new URL(databaseUrl).searchParams;
  if (parameters.has("options"))
    return "DATABASE_URL must not carry options: parts of the platform set connection options of their own.";
  const unknown = [...parameters.keys()].find((name) => /ssl|tls/i.test(name) && !SSL_PARAMETERS.includes(name));
  if (unknown !== undefined)
    return `DATABASE_URL must not carry ${unknown}, which no driver reads: TLS is asked for with ${SSL_PARAMETERS.slice(0, 4).join(", ")}.`;
  if (parameters.getAll("sslmode").some((mode) => !SSL_MODES.has(mode)))
    return `DATABASE_URL must have one of these as its sslmode: ${[...SSL_MODES].join(", ")}.`;
  return null;
}
