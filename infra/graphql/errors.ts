import { GraphQLError } from "graphql";
import { Refused } from "../kernel/refusal.ts";

/** How a refusal looks in a GraphQL answer: the code, status and fix, and the field where one is to blame. */
export function refusalError(refused: Refused): GraphQLError {
  const { kind, detail } = refused;
  return new GraphQLError(refused.message, {
    originalError: refused,
    extensions: {
      code: kind.code,
      status: kind.status,
      fix: refused.fix,
      ...(detail.field === undefined ? {} : { field: detail.field }),
      ...(detail.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: detail.retryAfterSeconds }),
      ...(detail.extra ? { detail: detail.extra } : {}),
    },
  });
}

/** Resolver middleware of every subgraph: refusals become GraphQL errors, faults pass on to be masked and logged. */
export async function translateRefusals(_: unknown, next: () => Promise<unknown>): Promise<unknown> {
  try {
    return await next();
  } catch (error) {
    throw error instanceof Refused ? refusalError(error) : error;
  }
}
