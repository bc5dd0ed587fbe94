/**
 * SQLSTATEs of a server that is going down or coming up, or that ended the session because nothing was asked of it.
 * Class 08 is a broken connection, class 53 a lack of resources.
 */
const SERVER_STATES = new Set(["57P01", "57P02", "57P03", "57P05", "25P03"]);
/** lock_not_available: what the statement needs was held by somebody else for longer than it may wait. */
const LOCK_HELD = "55P03";
/** What the operating system says of a server that is not there. */
const SYSTEM_CODES = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "ENOENT", "ETIMEDOUT"]);
/** What the driver says, without a code, of a connection that broke under a statement. */
const BROKEN = /^(Connection terminated|Client has encountered a connection error)/;

/** What the pool says when no connection became free, or none could be made, in the time that it was given. */
const NONE_FREE = "timeout exceeded when trying to connect";

/** A command was not begun, because earlier ones of its team have all the connections that the team may use. */
export class TeamBusy extends Error {
  override readonly name = "TeamBusy";

  constructor() {
    super("the team's other commands did not end in time");
  }
}

/** True when all connections of the process were busy for too long. */
export function isWaitForConnectionOver(error: unknown): boolean {
  return error instanceof Error && (error.message === NONE_FREE || isWaitForConnectionOver(error.cause));
}

/** True when what others hold, rows or the team's connections, was not given back in time; nothing was written. */
export function isWaitForOthersOver(error: unknown): boolean {
  return error instanceof TeamBusy || isWaitForLockOver(error);
}

/** True when a statement waited for a lock in vain. */
export function isWaitForLockOver(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (error as { code?: unknown }).code === LOCK_HELD || isWaitForLockOver(error.cause);
}

/** True when a statement failed for the want of a database and not for what it asked: the same may work in a moment. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  if (typeof code === "string" && (/^(08|53)...$/.test(code) || SERVER_STATES.has(code) || SYSTEM_CODES.has(code)))
    return true;
  if (code === LOCK_HELD || error instanceof TeamBusy) return true;
  return BROKEN.test(error.message) || error.message === NONE_FREE || isDatabaseUnavailable(error.cause);
}
