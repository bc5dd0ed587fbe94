import { context, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { Operation } from "../request.ts";
import type { GatewayPlugin } from "./plugin.ts";

/** A span for each operation and, below it, one for each request to a subgraph. Costs nothing without a provider. */
export function tracing(): GatewayPlugin {
  const tracer = trace.getTracer("nodus.gateway");
  const spans = new WeakMap<Operation, Span>();
  return {
    name: "tracing",
    started(operation) {
      const { definition, name, requestId, transport } = operation;
      const span = tracer.startSpan(`graphql ${definition.operation}${name ? ` ${name}` : ""}`, {
        kind: SpanKind.SERVER,
        attributes: {
          "graphql.operation.type": definition.operation,
          "graphql.operation.name": name ?? "",
          "nodus.request_id": requestId,
          "nodus.transport": transport,
        },
      });
      spans.set(operation, span);
      return ({ codes, results }) => {
        span.setAttribute("nodus.results", results);
        if (codes.length > 0) span.setStatus({ code: SpanStatusCode.ERROR, message: codes.join(" ") });
        span.end();
      };
    },
    fetching(operation, subgraph) {
      const parent = spans.get(operation);
      const around = parent ? trace.setSpan(context.active(), parent) : context.active();
      const span = tracer.startSpan(
        `subgraph ${subgraph}`,
        { kind: SpanKind.CLIENT, attributes: { "nodus.subgraph": subgraph } },
        around,
      );
      return (error) => {
        if (error !== undefined) {
          span.recordException(error instanceof Error ? error : String(error));
          span.setStatus({ code: SpanStatusCode.ERROR });
        }
        span.end();
      };
    },
  };
}
