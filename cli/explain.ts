import { isWaitForLockOver } from "../infra/db/unavailable.ts";
import { Refused } from "../infra/kernel/refusal.ts";
import { ClientError } from "./client.ts";

/** Faults whose message is written for the person at the terminal. */
const SPOKEN = new Set([
  "SettingsError",
  "DatabaseInUse",
  "Disagreement",
  "PooledConnection",
  "DatabaseTooNew",
  "ObjectStoreRefused",
  "ClientError",
  "UnreachableServer",
]);

/** What the file system says of a folder that is not ours to write. */
const UNWRITABLE = new Set(["EACCES", "EPERM", "EROFS", "ENOTDIR"]);

/** What to print for an error that ended a command. */
export function explain(error: unknown): string {
  if (error instanceof Refused) return `${error.message} ${error.fix}`;
  if (error instanceof ClientError) return error.message;
  if (!(error instanceof Error)) return String(error);
  if (SPOKEN.has(error.name)) return error.message;
  if ((error as NodeJS.ErrnoException).code === "EADDRINUSE")
    return `The address is in use (${error.message}). Stop what listens there, or set PORT.`;
  if (isWaitForLockOver(error))
    return 'Somebody else holds a row that this needs, and did not give it back in time; nothing was changed. Try again, or see "When something holds a row" in docs/operating.md.';
  if (isDatabaseLost(error))
    return `The database went away (${error.message}). Look whether the change was made before it is asked for again.`;
  if (UNWRITABLE.has((error as NodeJS.ErrnoException).code ?? ""))
    return `A file or folder cannot be written (${error.message}). NODUS_DATA_DIR must be a folder that this user may write.`;
  return error.stack ?? error.message;
}

/** What PostgreSQL says of its own end, or the driver of a connection that broke; files and other servers have other codes. */
function isDatabaseLost(error: Error): boolean {
  const { code = "" } = error as { code?: string };
  return /^(08|53|57P)...?$/.test(code) || error.message.startsWith("Connection terminated");
}
