import { type Context, type Span, type Tracer, trace } from "@opentelemetry/api";
import { parse } from "graphql";
import { afterAll, beforeAll, expect, it } from "vitest";
import { actor, gatewayOver } from "../../tests/federation/graph.ts";
import { shop } from "../../tests/federation/shop.ts";

interface Recorded {
  name: string;
  parent: string | null;
  attributes: Record<string, unknown>;
  failed: boolean;
  ended: boolean;
}

const spans: Recorded[] = [];
const names = new Map<Span, string>();

const tracer = {
  startSpan(name: string, options: { attributes?: Record<string, unknown> } = {}, around?: Context) {
    const parent = around && trace.getSpan(around);
    const recorded: Recorded = {
      name,
      parent: (parent && names.get(parent)) ?? null,
      attributes: { ...options.attributes },
      failed: false,
      ended: false,
    };
    spans.push(recorded);
    const span = {
      setAttribute: (key: string, value: unknown) => {
        recorded.attributes[key] = value;
      },
      setStatus: () => {
        recorded.failed = true;
      },
      recordException: () => {},
      end: () => {
        recorded.ended = true;
      },
    } as unknown as Span;
    names.set(span, name);
    return span;
  },
} as unknown as Tracer;

beforeAll(() => {
  trace.setGlobalTracerProvider({ getTracer: () => tracer });
});
afterAll(() => trace.disable());

it("an operation has a span, its requests to subgraphs have spans below it, and all end", async () => {
  const { gateway } = await gatewayOver(shop());
  await gateway.execute({
    document: parse("query Mine { me { name credit } boom }"),
    actor: actor(),
    requestId: "r-7",
  });
  await gateway.close();
  expect(spans.map(({ name, parent, failed, ended }) => ({ name, parent, failed, ended }))).toEqual([
    { name: "graphql query Mine", parent: null, failed: true, ended: true },
    { name: "subgraph people", parent: "graphql query Mine", failed: false, ended: true },
    { name: "subgraph orders", parent: "graphql query Mine", failed: false, ended: true },
  ]);
  expect(spans[0]!.attributes).toMatchObject({ "nodus.request_id": "r-7", "graphql.operation.name": "Mine" });
});
