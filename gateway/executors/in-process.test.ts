import {
  type ExecutionResult,
  GraphQLInputObjectType,
  GraphQLInt,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  Kind,
  OperationTypeNode,
  parse,
} from "graphql";
import { expect, test } from "vitest";
import { inProcess } from "./in-process.ts";

const Micros = new GraphQLScalarType<bigint, string>({
  name: "Micros",
  parseValue: (value) => BigInt(value as string | number),
  parseLiteral: (node) => BigInt(node.kind === Kind.INT ? node.value : "0"),
});
const Day = new GraphQLScalarType<Date, string>({
  name: "Day",
  parseValue: (value) => new Date(value as string),
  parseLiteral: (node) => new Date(node.kind === Kind.STRING ? node.value : ""),
});
const Wish = new GraphQLInputObjectType({
  name: "Wish",
  fields: { micros: { type: Micros }, day: { type: Day }, count: { type: GraphQLInt } },
});

const Item = new GraphQLInputObjectType({
  name: "Item",
  fields: { count: { type: new GraphQLNonNull(GraphQLInt), defaultValue: 7 } },
});
const Order = new GraphQLInputObjectType({ name: "Order", fields: { item: { type: Item } } });

/** Says of each member of a wish what it is when it arrives at a resolver. */
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: "Query",
    fields: {
      kinds: {
        type: GraphQLString,
        args: { wish: { type: Wish } },
        resolve: (_, { wish }: { wish: Record<string, unknown> }) =>
          Object.entries(wish)
            .map(([name, value]) => `${name} ${value instanceof Date ? "date" : typeof value}`)
            .join(", "),
      },
      ordered: {
        type: GraphQLInt,
        args: { order: { type: Order } },
        resolve: (_, { order }: { order: { item: { count: number } } }) => order.item.count,
      },
    },
  }),
});

const executor = inProcess("wishes", schema, () => ({}));

async function kinds(query: string, variables: Record<string, unknown> = {}) {
  const about = { document: parse(query), operationType: OperationTypeNode.QUERY, actor: null, requestId: "r" };
  return (await executor.execute({ ...about, variables })) as ExecutionResult;
}

const ARRIVED = { data: { kinds: "micros bigint, day date, count number" } };

test("values written into a document arrive as their scalars read them", async () => {
  expect(await kinds('{ kinds(wish: { micros: 5, day: "2026-01-02", count: 1 }) }')).toEqual(ARRIVED);
});

test("values in variables, and as their defaults, arrive as their scalars read them", async () => {
  const inVariable = "query ($wish: Wish) { kinds(wish: $wish) }";
  expect(await kinds(inVariable, { wish: { micros: 5, day: "2026-01-02", count: 1 } })).toEqual(ARRIVED);
  expect(
    await kinds('query ($wish: Wish = { micros: 5, day: "2026-01-02", count: 1 }) { kinds(wish: $wish) }'),
  ).toEqual(ARRIVED);
});

test("what a variable leaves out of an input has the default that its field declares, however deep", async () => {
  const ordered = await kinds("query ($order: Order) { ordered(order: $order) }", { order: { item: {} } });
  expect(ordered).toEqual({ data: { ordered: 7 } });
});

test("a variable that does not fit is the request's fault", async () => {
  const { errors } = await kinds("query ($wish: Wish) { kinds(wish: $wish) }", { wish: { count: "many" } });
  expect(errors?.map(({ extensions }) => extensions.code)).toEqual(["BAD_USER_INPUT"]);
});

test("a literal that its scalar does not take is the request's fault", async () => {
  const { data, errors } = await kinds("{ kinds(wish: { count: 1.5 }) }");
  expect(data ?? null).toBeNull();
  expect(errors).toHaveLength(1);
});
