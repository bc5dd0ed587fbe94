import { LIMITS } from "../../infra/kernel/limits.ts";
import type { Refused } from "../../infra/kernel/refusal.ts";
import type { Measure } from "../measure.ts";
import { beyond, GATEWAY } from "../refusals.ts";
import type { Operation } from "../request.ts";
import type { GatewayPlugin } from "./plugin.ts";

/** How much one document may ask for. */
export interface DocumentLimits {
  /** Tokens of the text. */
  readonly tokens: number;
  /** Levels of fields. */
  readonly depth: number;
  readonly aliases: number;
  readonly rootFields: number;
  /** Values that the answer may hold, page sizes multiplied out. */
  readonly cost: number;
}

export const DEFAULT_DOCUMENT_LIMITS: DocumentLimits = {
  tokens: LIMITS.graphqlTokens,
  depth: LIMITS.graphqlDepth,
  aliases: LIMITS.graphqlAliases,
  rootFields: LIMITS.graphqlRootFields,
  cost: LIMITS.graphqlCost,
};

/** The limits that a document passes whatever its variables are. */
export function refuseBeyond(limits: DocumentLimits, measured: Measure): Refused[] {
  const refusals: Refused[] = [];
  if (measured.depth > limits.depth) refusals.push(beyond(GATEWAY.query_too_deep, limits.depth, measured.depth));
  if (measured.aliases > limits.aliases)
    refusals.push(beyond(GATEWAY.too_many_aliases, limits.aliases, measured.aliases));
  if (measured.rootFields > limits.rootFields)
    refusals.push(beyond(GATEWAY.too_many_root_fields, limits.rootFields, measured.rootFields));
  return refusals;
}

/** Refuses operations whose page sizes, multiplied out, may read too much; sizes may come from variables. */
export function costLimit(
  limit: number,
  measureOf: (operation: Operation["definition"]) => Measure | undefined,
): GatewayPlugin {
  return {
    name: "cost-limit",
    admit(operation) {
      const seen = measureOf(operation.definition)?.cost(operation.variables) ?? 0;
      if (seen > limit) throw beyond(GATEWAY.query_too_costly, limit, seen);
    },
  };
}
