import websocket from "@fastify/websocket";
import type { FastifyInstance } from "fastify";
import { buildSchema } from "graphql";
import { makeHandler } from "graphql-ws/use/@fastify/websocket";

/** Subscriptions that never say anything, on GraphQL over WebSocket and one small schema. */
export async function silentSubscriptions(app: FastifyInstance): Promise<void> {
  await app.register(websocket);
  const schema = buildSchema("type Query { nothing: Int } type Subscription { workloadEvents(workloadId: ID!): Int }");
  schema.getSubscriptionType()!.getFields().workloadEvents!.subscribe = () => silence();
  app.register(async (scope) => {
    scope.get("/graphql", { websocket: true }, makeHandler({ schema, validate: () => [] }));
  });
}

function silence(): AsyncIterableIterator<never> {
  let end: (result: IteratorResult<never>) => void = () => {};
  const ended = new Promise<IteratorResult<never>>((resolve) => {
    end = resolve;
  });
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => ended,
    return: () => {
      end({ done: true, value: undefined });
      return ended;
    },
  };
}
