import type { FormattedExecutionResult, GraphQLFormattedError } from "graphql";
import type { Result } from "./request.ts";

/** A result as it is sent: errors as JSON, without what was meant for the HTTP head. */
export function formatted(result: Result): FormattedExecutionResult {
  if (!result.errors) return result as FormattedExecutionResult;
  const errors = result.errors.map((error): GraphQLFormattedError => {
    const { http, ...extensions } = error.extensions;
    return { ...error.toJSON(), extensions };
  });
  return { ...result, errors };
}
