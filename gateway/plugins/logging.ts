import type { FastifyBaseLogger } from "fastify";
import { Refused } from "../../infra/kernel/refusal.ts";
import type { GatewayPlugin } from "./plugin.ts";

/** A line for each operation when it ends, and for each request that a subgraph gave no answer to: who, what, how long, which errors. Never variables, never the document. */
export function logging(log: FastifyBaseLogger): GatewayPlugin {
  return {
    name: "logging",
    started({ requestId, definition, name, actor, transport }) {
      return ({ durationMs, codes, results }) => {
        const line = {
          requestId,
          operation: name,
          kind: definition.operation,
          keyId: actor?.keyId,
          transport,
          durationMs: Math.round(durationMs),
          codes,
          results,
        };
        if (codes.length > 0) log.info(line, "operation ended with errors");
        else log.debug(line, "operation ended");
      };
    },
    fetching({ requestId, name }, subgraph) {
      return (error) => {
        if (error === undefined) return;
        const reason = error instanceof Refused ? { reason: error.message } : { err: error };
        log.warn({ requestId, operation: name, subgraph, ...reason }, "a subgraph gave no answer");
      };
    },
  };
}
