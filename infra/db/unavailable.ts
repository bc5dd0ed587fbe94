/** SQLSTATEs of a server that is going down or coming up, or that ended the session because nothing was asked of it. */
const SERVER_STATES = new Set(["57P01", "57P02", "57P03", "57P05", "25P03"]);
/** lock_not_available: what the statement needs was held by somebody else for longer than it may wait. */
const LOCK_HELD = "55P03";
/** What the operating system says of a server that is not there. */
const ABSENT = new Set(["ECONNREFUSED", "ENOENT"]);
/** What it says of a connection that broke. */
const BROKEN_CODES = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT"]);
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
  return isCausedBy(error, ({ message }) => message === NONE_FREE);
}

/** True when what others hold, rows or the team's connections, was not given back in time; nothing was written. */
export function isWaitForOthersOver(error: unknown): boolean {
  return isWaitForLockOver(error) || isCausedBy(error, (cause) => cause instanceof TeamBusy);
}

/** True when a statement waited for a lock in vain. */
export function isWaitForLockOver(error: unknown): boolean {
  return isCausedBy(error, (_, code) => code === LOCK_HELD);
}

/** True when the connection broke under a statement or the server ended it; whether the statement was carried out is not known. */
export function isConnectionLost(error: unknown): boolean {
  return isCausedBy(
    error,
    ({ message }, code) =>
      /^08...$/.test(code) || SERVER_STATES.has(code) || BROKEN_CODES.has(code) || BROKEN.test(message),
  );
}

/** True when the server lacked room, memory or connections for a statement, which then changed nothing. */
export function isOutOfResources(error: unknown): boolean {
  return isCausedBy(error, (_, code) => /^53...$/.test(code));
}

/** True when a statement failed for the want of a database and not for what it asked: the same may work in a moment. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (isConnectionLost(error) || isOutOfResources(error)) return true;
  if (isWaitForOthersOver(error) || isWaitForConnectionOver(error)) return true;
  return isCausedBy(error, (_, code) => ABSENT.has(code));
}

/** Whether an error, or one that it was caused by, is of a kind; `code` is empty where it has none. */
function isCausedBy(error: unknown, isOfKind: (cause: Error, code: string) => boolean): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return isOfKind(error, typeof code === "string" ? code : "") || isCausedBy(error.cause, isOfKind);
}
