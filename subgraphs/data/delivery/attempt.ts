/** Why an attempt failed. Closed, and free of anything that came from the receiver. */
const ATTEMPT_ERRORS = [
  /** No answer within ten seconds. */
  "timeout",
  /** The name does not resolve. */
  "name_unknown",
  /** No connection, or it broke before an answer. */
  "connection_failed",
  "tls_untrusted",
  "tls_host_mismatch",
  "tls_failed",
  /** The name leads to a machine that must not be reached. */
  "private_address",
  /** A redirect, which is not followed. */
  "redirected",
  /** 410: the receiver wants no more. */
  "gone",
  /** Any other status than 2xx. */
  "refused",
  /** The sender died before it noted an outcome. */
  "interrupted",
  /** The webhook was deleted or disabled meanwhile. */
  "webhook_off",
  /** The answer to a request has not the documented shape. */
  "invalid_answer",
  /** The answer is larger than allowed. */
  "answer_too_large",
] as const;

export type AttemptError = (typeof ATTEMPT_ERRORS)[number];

/** One attempt as it is kept. */
export interface Attempt {
  /** From 1. */
  number: number;
  /** When it began, ISO 8601. */
  at: string;
  /** Null, with status and error, while it is under way, and for good when its sender died. */
  durationMs: number | null;
  /** HTTP status; null without an answer. */
  status: number | null;
  /** Null for a success, which has a status. */
  error: AttemptError | null;
}
