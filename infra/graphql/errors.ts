import { GraphQLError } from "graphql";
import { isDatabaseUnavailable, isWaitForConnectionOver, isWaitForOthersOver } from "../db/unavailable.ts";
import { COMMON, Refused } from "../kernel/refusal.ts";

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

/** Resolver middleware of every subgraph: refusals become GraphQL errors, a database that is away a 503, faults pass on to be masked and logged. */
export async function translateRefusals(_: unknown, next: () => Promise<unknown>): Promise<unknown> {
  try {
    return await next();
  } catch (error) {
    throw asRefusal(error);
  }
}

/** A refusal as a GraphQL error; the want of a database as one that clients repeat; any other fault as it is. */
export function asRefusal(error: unknown): unknown {
  if (error instanceof Refused) return refusalError(error);
  if (!isDatabaseUnavailable(error)) return error;
  const refused = new Refused(COMMON.unavailable, {
    message: whyUnavailable(error),
    retryAfterSeconds: 1,
  });
  refused.cause = error;
  return refusalError(refused);
}

function whyUnavailable(error: unknown): string {
  if (isWaitForOthersOver(error)) return "What this needs is held by something else, which did not let it go in time.";
  if (isWaitForConnectionOver(error)) return "No connection to the database became free in time.";
  return "The database cannot be reached just now.";
}
