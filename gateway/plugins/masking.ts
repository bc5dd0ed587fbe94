import type { FastifyBaseLogger } from "fastify";
import { GraphQLError } from "graphql";
import { refusalError } from "../../infra/graphql/errors.ts";
import { Refused } from "../../infra/kernel/refusal.ts";
import { GATEWAY } from "../refusals.ts";
import type { GatewayPlugin } from "./plugin.ts";

/** Codes that say "something failed" and nothing else: what is behind them is not for clients. */
const FAULT_CODES = new Set<unknown>(["INTERNAL_SERVER_ERROR", "DOWNSTREAM_SERVICE_ERROR"]);

/** Lets refusals pass as they are; anything else reads `internal_error` with the request id, and is logged in full. */
export function masking(log: FastifyBaseLogger): GatewayPlugin {
  return {
    name: "masking",
    result({ requestId, name }, result) {
      if (!result.errors) return result;
      return { ...result, errors: result.errors.map((error) => mask(error, requestId, log, name)) };
    },
  };
}

/** The error as a client may see it. */
export function mask(
  error: GraphQLError,
  requestId: string,
  log: FastifyBaseLogger,
  operation: string | null,
): GraphQLError {
  const { code } = error.extensions;
  const cause = causeOf(error);
  if (typeof code === "string" && !FAULT_CODES.has(code)) return error;
  if (cause instanceof Refused) return relocated(refusalError(cause), error);
  log.error({ requestId, operation, path: error.path, err: cause }, "operation failed");
  const { kind } = new Refused(GATEWAY.internal_error);
  const extensions = { code: kind.code, status: kind.status, fix: kind.fix, ...(requestId ? { requestId } : {}) };
  return new GraphQLError(kind.message, { path: error.path, nodes: error.nodes, extensions });
}

/** The innermost error: what was thrown first. */
function causeOf(error: Error): Error {
  let cause = error;
  while (cause instanceof GraphQLError && cause.originalError) cause = cause.originalError;
  return cause;
}

function relocated(refusal: GraphQLError, at: GraphQLError): GraphQLError {
  return new GraphQLError(refusal.message, {
    path: at.path,
    nodes: at.nodes,
    originalError: refusal.originalError,
    extensions: refusal.extensions,
  });
}
