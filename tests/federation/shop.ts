import { GraphQLError } from "graphql";
import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import type { TestSubgraph } from "./graph.ts";

/** A source that says nothing until told to, and knows how many listen. */
export class Ticker {
  readonly #listeners = new Set<(value: number) => void>();

  /** How many items of `flood` were read. */
  flooded = 0;

  get open(): number {
    return this.#listeners.size;
  }

  tick(value: number): void {
    for (const listener of [...this.#listeners]) listener(value);
  }

  listen(): AsyncIterableIterator<{ ticks: { value: number; owner: { id: string; name: string | null } } }> {
    const queue: number[] = [];
    let wake: (() => void) | null = null;
    const listener = (value: number) => {
      queue.push(value);
      wake?.();
    };
    this.#listeners.add(listener);
    const end = () => {
      this.#listeners.delete(listener);
      wake?.();
    };
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: async () => {
        while (queue.length === 0) {
          if (!this.#listeners.has(listener)) return { done: true, value: undefined };
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        const value = queue.shift()!;
        return {
          done: false,
          value: { ticks: { value, owner: value < 0 ? { id: "gone", name: null } : { id: "u1", name: "Person u1" } } },
        };
      },
      return: async () => {
        end();
        return { done: true, value: undefined };
      },
      throw: async (error) => {
        end();
        throw error;
      },
    };
  }
}

/** People and what they bought: two subgraphs whose types hang together. */
export function shop(ticker = new Ticker()): TestSubgraph[] {
  const people: TestSubgraph = {
    name: "people",
    sdl: `
      type Query { me: Person person(id: ID!): Person people(first: Int): [Person!]! boom: String fault: String! whoAsks: String }
      type Mutation { rename(id: ID!, name: String!): Person }
      type Subscription { ticks: Tick! count(to: Int!): Int! flood: String! broken: Int }
      type Tick @key(fields: "value") { value: Int! owner: Person }
      type Person @key(fields: "id") { id: ID! name: String! }
    `,
    resolvers: {
      Query: {
        me: () => ({ id: "u1", name: "Ada" }),
        person: (_: unknown, { id }: { id: string }) => (id === "u9" ? null : { id, name: `Person ${id}` }),
        people: (_: unknown, { first }: { first?: number }) =>
          Array.from({ length: first ?? 2 }, (_x, i) => ({ id: `u${i + 1}`, name: `N${i + 1}` })),
        boom: () => {
          throw new Error("duplicate key value violates unique constraint (secret row)");
        },
        fault: () => {
          throw new Refused(COMMON.forbidden, { field: "/x" });
        },
        whoAsks: (_: unknown, __: unknown, context: { actor: { keyId: string } | null; requestId: string }) =>
          `${context.actor?.keyId} ${context.requestId}`,
      },
      Mutation: { rename: (_: unknown, { id, name }: { id: string; name: string }) => ({ id, name }) },
      Subscription: {
        ticks: { subscribe: () => ticker.listen() },
        count: {
          subscribe: async function* (_: unknown, { to }: { to: number }) {
            for (let n = 1; n <= to; n++) yield { count: n };
          },
        },
        flood: {
          subscribe: async function* () {
            for (const flood = "x".repeat(32 * 1024); ; ticker.flooded++) yield { flood };
          },
        },
        broken: {
          subscribe: () => {
            throw new GraphQLError("not now", { extensions: { code: "not_now" } });
          },
        },
      },
      Person: { __resolveReference: ({ id }: { id: string }) => (id === "gone" ? null : { id, name: `Person ${id}` }) },
    },
  };
  const orders: TestSubgraph = {
    name: "orders",
    sdl: `
      type Query { orders: [Order!]! total: Int }
      type Order @key(fields: "id") { id: ID! buyer: Person! }
      type Person @key(fields: "id") { id: ID! orders: [Order!]! credit: Int }
    `,
    resolvers: {
      Query: { orders: () => [{ id: "o1", buyer: { id: "u1" } }], total: () => 1 },
      Person: {
        __resolveReference: ({ id }: { id: string }) => ({ id }),
        orders: ({ id }: { id: string }) => [{ id: `${id}-o1`, buyer: { id } }],
        credit: ({ id }: { id: string }) => (id === "u2" ? null : 5),
      },
    },
  };
  return [people, orders];
}
