import { isConnectionLost, isOutOfResources, isWaitForLockOver } from "../infra/db/unavailable.ts";
import { Refused } from "../infra/kernel/refusal.ts";
import { whyUnwritable } from "../roles/unwritable.ts";
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

/** What to print for an error that ended a command. */
export function explain(error: unknown): string {
  if (error instanceof Refused) return `${error.message} ${error.fix}`;
  if (error instanceof ClientError) return error.message;
  if (!(error instanceof Error)) return String(error);
  if (SPOKEN.has(error.name)) return error.message;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") return `The address is in use (${error.message}). Stop what listens there, or set PORT.`;
  if (code === "EACCES" && syscall === "listen")
    return `This user may not listen there (${error.message}). Set PORT to one from 1024 on.`;
  if (isWaitForLockOver(error))
    return 'Somebody else holds a row that this needs, and did not give it back in time; nothing was changed. Try again, or see "When something holds a row" in docs/operating.md.';
  if (isConnectionLost(error))
    return `The database went away (${wordsOf(error)}). Look whether the change was made before it is asked for again.`;
  if (isOutOfResources(error))
    return `The database lacks what this needs (${wordsOf(error)}). Run the command again once it has that.`;
  const reason = whyUnwritable(error);
  if (reason)
    return `A file or folder cannot be written: ${reason} (${error.message}). NODUS_DATA_DIR must be a folder that this user may write.`;
  return error.stack ?? error.message;
}

/** An error's message with those of what caused it. */
function wordsOf({ message, cause }: Error): string {
  return cause instanceof Error && !message.includes(cause.message) ? `${message}: ${wordsOf(cause)}` : message;
}
