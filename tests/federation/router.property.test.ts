import fc from "fast-check";
import {
  buildSchema,
  execute,
  type GraphQLCompositeType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isCompositeType,
  parse,
  validate,
} from "graphql";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Gateway } from "../../gateway/gateway.ts";
import { actor, gatewayOver, type TestSubgraph } from "./graph.ts";

/** Everything that the graph can say: rows by id. Columns may be null where the graph says they can't. */
type Row = Record<string, unknown> & { __typename: "User" | "Team" };
type World = Map<string, Row>;
let world: World = new Map();

const at = (id: unknown) => (typeof id === "string" ? (world.get(id) ?? null) : null);
const each = (ids: unknown) => (Array.isArray(ids) ? ids.map(at) : null);

const links = {
  friend: (r: Row) => at(r.friend),
  boss: (r: Row) => at(r.boss),
  friends: (r: Row) => each(r.friends),
  loose: (r: Row) => each(r.loose),
};
const root = {
  first: () => at("u0"),
  must: () => at("u1"),
  all: () => each(["u0", "u1", "t0"]),
  users: () => each(["u0", "u2"]),
  any: () => at("t0"),
};

const PEOPLE: TestSubgraph = {
  name: "people",
  sdl: `
    type Query { first: User must: User! all: [Thing] users: [User!] any: Thing }
    union Thing = User | Team
    type User @key(fields: "id") { id: ID! name: String! nick: String friend: User boss: User! }
    type Team @key(fields: "id") { id: ID! title: String lead: User! }
  `,
  resolvers: {
    Query: root,
    Thing: { __resolveType: (row: Row) => row.__typename },
    User: { __resolveReference: ({ id }: { id: string }) => at(id), friend: links.friend, boss: links.boss },
    Team: { __resolveReference: ({ id }: { id: string }) => at(id), lead: (r: Row) => at(r.lead) },
  },
};
const WORK: TestSubgraph = {
  name: "work",
  sdl: `
    type Query { busy: [User!]! }
    type User @key(fields: "id") { id: ID! karma: Int! score: Int friends: [User!]! loose: [User] }
    type Team @key(fields: "id") { id: ID! size: Int! members: [User!]! }
  `,
  resolvers: {
    Query: { busy: () => each(["u2", "u0"]) },
    User: {
      __resolveReference: ({ id }: { id: string }) => (at(id)?.unknownAtWork ? null : at(id)),
      karma: (r: Row) => (r.unknownAtWork ? null : r.karma),
      score: (r: Row) => (r.unknownAtWork ? null : r.score),
      friends: (r: Row) => (r.unknownAtWork ? null : links.friends(r)),
      loose: (r: Row) => (r.unknownAtWork ? null : links.loose(r)),
    },
    Team: { __resolveReference: ({ id }: { id: string }) => at(id), members: (r: Row) => each(r.friends) },
  },
};

/** The same graph as one schema, which graphql-js runs: what a client must not be able to tell apart. */
const WHOLE = buildSchema(`
  type Query { first: User must: User! all: [Thing] users: [User!] any: Thing busy: [User!]! }
  union Thing = User | Team
  type User { id: ID! name: String! nick: String friend: User boss: User! karma: Int! score: Int friends: [User!]! loose: [User] }
  type Team { id: ID! title: String lead: User! size: Int! members: [User!]! }
`);

const WORK_FIELDS = new Set(["karma", "score", "friends", "loose"]);

function whole(query: string, variables: Record<string, unknown>) {
  return execute({
    schema: WHOLE,
    document: parse(query),
    variableValues: variables,
    typeResolver: (row) => (row as Row).__typename,
    fieldResolver: (row, _args, _context, { fieldName, parentType }) => {
      if (parentType.name === "Query")
        return fieldName === "busy" ? each(["u2", "u0"]) : root[fieldName as keyof typeof root]();
      if (parentType.name === "User" && WORK_FIELDS.has(fieldName) && (row as Row).unknownAtWork) return null;
      if (fieldName === "members") return each((row as Row).friends);
      if (fieldName === "lead") return at((row as Row).lead);
      const link = links[fieldName as keyof typeof links];
      return link ? link(row as Row) : (row as Row)[fieldName];
    },
  });
}

let gateway: Gateway;
beforeAll(async () => {
  ({ gateway } = await gatewayOver([PEOPLE, WORK]));
});
afterAll(() => gateway.close());

const id = fc.constantFrom("u0", "u1", "u2", "u3", "nobody", null);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 6, nil: null });
const user = fc.record({
  name: maybe(fc.constantFrom("Ada", "Bo")),
  nick: maybe(fc.constant("n")),
  friend: id,
  boss: id,
  karma: maybe(fc.nat(9)),
  score: maybe(fc.nat(9)),
  friends: maybe(fc.array(id, { maxLength: 3 })),
  loose: maybe(fc.array(id, { maxLength: 3 })),
  unknownAtWork: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
});
const team = fc.record({
  title: maybe(fc.constant("T")),
  lead: id,
  size: maybe(fc.nat(9)),
  friends: maybe(fc.array(id, { maxLength: 2 })),
});

const rows = fc.tuple(user, user, user, user, team).map(
  ([...all]) =>
    new Map(
      all.map((row, i): [string, Row] => {
        const key = i < 4 ? `u${i}` : "t0";
        return [key, { ...row, id: key, __typename: i < 4 ? "User" : "Team" } as Row];
      }),
    ),
);

function selection(
  schema: GraphQLSchema,
  type: GraphQLCompositeType,
  take: (n: number) => number,
  depth: number,
): string {
  const parts: string[] = [];
  for (let i = 0; i <= take(4); i++) {
    if (isAbstractType(type)) {
      const inner = schema.getPossibleTypes(type)[take(2)]!;
      parts.push(take(3) === 0 ? "__typename" : `... on ${inner.name} { ${selection(schema, inner, take, depth)} }`);
      continue;
    }
    const fields = "getFields" in type ? Object.values(type.getFields()) : [];
    const field = fields[take(fields.length)]!;
    const named = getNamedType(field.type);
    if (isCompositeType(named) && depth === 0) continue;
    const alias = take(4) === 0 ? `${type.name}_${field.name}: ` : "";
    const on = ["", "", "", "@include(if: $on)", "@skip(if: $on)"][take(5)];
    const inner = isCompositeType(named) ? `{ ${selection(schema, named, take, depth - 1)} }` : "";
    const written = `${alias}${field.name} ${on} ${inner}`;
    parts.push(take(5) === 0 ? `... on ${type.name} { ${written} }` : written);
  }
  return parts.length > 0 ? parts.join(" ") : "__typename";
}

const choices = fc.array(fc.nat(5_039), { minLength: 60, maxLength: 120 });

it("can't be told from one server over one schema, whatever is asked and whatever is missing", async () => {
  await fc.assert(
    fc.asyncProperty(rows, choices, fc.boolean(), async (given, numbers, on) => {
      world = given;
      let next = 0;
      const take = (n: number) => numbers[next++ % numbers.length]! % n;
      const query = `query ($on: Boolean = true) { t: __typename @include(if: $on) ${selection(WHOLE, WHOLE.getQueryType()!, take, 3)} }`;
      expect(validate(WHOLE, parse(query))).toEqual([]);
      const expected = await whole(query, { on });
      const actual = await gateway.execute({
        document: parse(query),
        variables: { on },
        actor: actor(),
        requestId: "r",
      });
      expect(JSON.stringify(actual.data), query).toBe(JSON.stringify(expected.data));
      expect(Boolean(actual.errors?.length), query).toBe(Boolean(expected.errors?.length));
    }),
    { numRuns: 150 },
  );
}, 60_000);
