import { LIMITS } from "../../../infra/kernel/limits.ts";

/** Words for a failed export. */
export type ExportFailureWord =
  | "query_failed"
  | "query_timeout"
  | "row_limit"
  | "byte_limit"
  | "duplicate_columns"
  | "credential_inactive"
  | "connection_lost"
  | "quota_exceeded"
  | "shutdown"
  | "internal";

/** Why an export failed. Its message is for the team and holds no value of a row, a query or a credential. */
export class ExportFailure extends Error {
  override readonly name = "ExportFailure";
  readonly word: ExportFailureWord;

  constructor(word: ExportFailureWord, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.word = word;
  }
}

/** Of an export that was not done when its time was over, wherever it was then. */
export function exportTimedOut(cause?: unknown): ExportFailure {
  const minutes = LIMITS.exportMs / 60_000;
  const message = `The export was not done within ${minutes} minutes, waiting included.`;
  return new ExportFailure("query_timeout", message, cause);
}
