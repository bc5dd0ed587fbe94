/** SQLSTATEs of a server that is going down or coming up. Class 08 is a broken connection, class 53 a lack of resources. */
const SERVER_STATES = new Set(["57P01", "57P02", "57P03"]);
/** What the operating system says of a server that is not there. */
const SYSTEM_CODES = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "ENOENT", "ETIMEDOUT"]);
/** What the driver says, without a code, of a connection that broke under a statement. */
const BROKEN = /^(Connection terminated|Client has encountered a connection error)/;

/** True when a statement failed for the want of a database and not for what it asked: the same may work in a moment. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  if (typeof code === "string" && (/^(08|53)...$/.test(code) || SERVER_STATES.has(code) || SYSTEM_CODES.has(code)))
    return true;
  return BROKEN.test(error.message) || isDatabaseUnavailable(error.cause);
}
