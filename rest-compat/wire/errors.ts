import { GraphQLError } from "graphql";
import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import type { Envelope } from "../contract.ts";
import type { GraphError } from "../ports.ts";

/** A refusal on the REST wire, before an envelope is chosen. */
export interface WireError {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly fix: string;
  /** JSON pointer of the field to blame. */
  readonly field?: string;
  readonly extra?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
}

/** Errors that the graph reported for a REST row; the first one decides the answer. */
export class GraphRefused extends Error {
  override readonly name = "GraphRefused";
  readonly error: GraphError;
  constructor(error: GraphError) {
    super(error.message);
    this.error = error;
  }
}

/** Seconds that a transient refusal asks for where it does not say itself. */
const DEFAULT_RETRY_AFTER_SECONDS = 1;

/** What a thrown value means on the wire; null for a fault, which is logged and masked. */
export function wireError(thrown: unknown): WireError | null {
  if (thrown instanceof Refused) return withRetry(ofRefused(thrown));
  if (thrown instanceof GraphRefused) return withRetry(ofGraph(thrown.error));
  if (thrown instanceof GraphQLError) return withRetry(ofGraph(thrown)); // from a port that asked the graph itself
  return ofFramework(thrown);
}

/** The masked answer to a fault. */
export const INTERNAL_ERROR: WireError = {
  status: 500,
  code: "internal_error",
  message: "The request failed inside Nodus.",
  fix: "Repeat the request; if it keeps failing, report the X-Request-Id of this answer.",
};

function ofRefused({ kind, detail, message, fix }: Refused): WireError {
  return {
    status: kind.status,
    code: kind.code,
    message,
    fix,
    field: detail.field,
    extra: detail.extra,
    retryAfterSeconds: detail.retryAfterSeconds,
  };
}

/** In the graph the key is a member of the input; here it is a header, which no pointer leads to. */
const ABOUT_THE_KEY: ReadonlySet<string> = new Set(
  [COMMON.missing_idempotency_key, COMMON.invalid_idempotency_key, COMMON.idempotency_conflict].map(({ code }) => code),
);

function ofGraph({ message, extensions = {} }: GraphError): WireError | null {
  const { code, status, fix, field, detail, retryAfterSeconds } = extensions as Partial<WireError> & {
    detail?: Record<string, unknown>;
  };
  if (typeof code === "string" && typeof status === "number")
    return {
      ...{ status, code, message, fix: fix ?? "", extra: detail, retryAfterSeconds },
      field: ABOUT_THE_KEY.has(code) ? undefined : field,
    };
  // A scalar refused a value: the graph's own word for a bad argument.
  if (code === "BAD_USER_INPUT") return { ...ofRefused(new Refused(COMMON.invalid_request)), message };
  return null;
}

/** Fastify's own refusals, such as a broken content-length. */
function ofFramework(thrown: unknown): WireError | null {
  const { statusCode, code, message } = (thrown ?? {}) as { statusCode?: number; code?: string; message?: string };
  if (!code?.startsWith("FST_") || statusCode === undefined || statusCode >= 500) return null;
  if (statusCode === 413) return ofRefused(new Refused(COMMON.body_too_large));
  if (statusCode === 415) return ofRefused(new Refused(COMMON.unsupported_media_type));
  return { ...ofRefused(new Refused(COMMON.invalid_request, { message })), status: 400 };
}

function withRetry(error: WireError | null): WireError | null {
  const transient = error !== null && (error.status === 429 || error.status === 503);
  return transient && error.retryAfterSeconds === undefined
    ? { ...error, retryAfterSeconds: DEFAULT_RETRY_AFTER_SECONDS }
    : error;
}

/** The body of an error: `{error, message, …}` or `{code, message, …}` as documented, with `fix` and `url` in both. */
export function errorBody(
  error: WireError,
  envelope: Envelope,
  helpUrl: (code: string) => string,
): Record<string, unknown> {
  const { code, message, fix, field } = error;
  const particulars = { ...error.extra, ...(field === undefined ? {} : { field }) };
  const named = envelope === "sandbox" ? { code, message, fix } : { error: code, message, ...(fix ? { fix } : {}) };
  return { ...particulars, ...named, url: helpUrl(code) };
}
