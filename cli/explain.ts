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
  if (UNWRITABLE.has((error as NodeJS.ErrnoException).code ?? ""))
    return `A file or folder cannot be written (${error.message}). NODUS_DATA_DIR must be a folder that this user may write.`;
  return error.stack ?? error.message;
}
