import { buildSchema, GraphQLError, getOperationAST, parse } from "graphql";
import { describe, expect, it } from "vitest";
import { completionOf } from "./completion.ts";
import { TYPE_MARKER } from "./normal.ts";
import { byCompletion, byGraphqlJs, type Raw } from "./oracle-fixture.ts";

const schema = buildSchema(`
  type Query { user: User  users: [User!]!  loose: [User]  maybe: [User!]  must: User!  hits: [Hit!]!  hit: Hit  node: Node  nodes: [Node]!  grid: [[Int!]!]  cube: [[[User!]]!]  tags: [String!]!  names: [String] }
  type User implements Node { id: ID!  name: String!  nick: String  age: Int  friend: User  best: User!  friends: [User!]  tags: [String!]! }
  type Bot implements Node { id: ID!  model: String!  owner: User! }
  interface Node { id: ID! }
  union Hit = User | Bot
`);

const T = TYPE_MARKER;
const user = { id: "1", name: "Ada" };

interface Case {
  it: string;
  query: string;
  raw: Raw;
  variables?: Record<string, unknown>;
}

const CASES: Case[] = [
  {
    it: "keeps complete data as it is",
    query: "{ user { id name nick } tags }",
    raw: { user: { ...user, nick: "A" }, tags: ["x"] },
  },
  {
    it: "makes null of what is missing and may be null",
    query: "{ user { nick age friend { id } } loose { id } }",
    raw: { user: {} },
  },
  {
    it: "moves a missing non-null value to a nullable parent",
    query: "{ user { id name } tags }",
    raw: { user: { id: "1" }, tags: [] },
  },
  {
    it: "moves a null to the root where nothing on the way may be null",
    query: "{ must { name } user { id } }",
    raw: { must: { name: null }, user },
  },
  {
    it: "answers null for all data when a non-null root field is missing",
    query: "{ user { id } must { id } }",
    raw: { user },
  },
  {
    it: "moves a null item of a list of non-null items to the list",
    query: "{ maybe { id } tags }",
    raw: { maybe: [user, null], tags: ["a"] },
  },
  {
    it: "moves a null item of a non-null list to the parent of the list",
    query: "{ user { tags } }",
    raw: { user: { tags: ["a", null] } },
  },
  {
    it: "moves a null item of a non-null list at the root to the data",
    query: "{ users { id } }",
    raw: { users: [user, null] },
  },
  {
    it: "keeps a null item where items may be null",
    query: "{ loose { id name } names }",
    raw: { loose: [null, user, { id: "2" }], names: ["a", null] },
  },
  {
    it: "moves a null out of an object inside a list",
    query: "{ maybe { id name } }",
    raw: { maybe: [user, { id: "2" }, { name: "x" }] },
  },
  {
    it: "moves nulls out of lists of lists",
    query: "{ grid cube { id } }",
    raw: { grid: [[1, null], [2]], cube: [[[user], [null]], [null]] },
  },
  {
    it: "stops a null at the nearest nullable list of lists",
    query: "{ cube { name } }",
    raw: { cube: [[[{ name: "a" }], [{}]]] },
  },
  {
    it: "answers an entity that did not resolve at all",
    query: "{ user { friend { name best { id } } } }",
    raw: { user: { friend: { id: "2" } } },
  },
  {
    it: "answers an entity that resolved with a null",
    query: "{ user { friend { name best { id } } } }",
    raw: { user: { friend: { name: "B", best: null } } },
  },
  {
    it: "moves a null through two non-null objects",
    query: "{ user { best { best { name } } } }",
    raw: { user: { best: { best: {} } } },
  },
  { it: "treats a list that is no list as missing", query: "{ loose { id } }", raw: { loose: null } },
  {
    it: "completes members of a union by their type",
    query: "{ hits { ... on User { id name } ... on Bot { model } } }",
    raw: {
      hits: [
        { [T]: "User", ...user },
        { [T]: "Bot", model: "m" },
      ],
    },
  },
  {
    it: "moves a null of a union's member to the list",
    query: "{ hit { ... on User { name } } hits { ... on Bot { model } } }",
    raw: { hit: { [T]: "User" }, hits: [{ [T]: "Bot", model: null }] },
  },
  {
    it: "gives a member no fields of another member",
    query: "{ hits { ... on Bot { model } } }",
    raw: { hits: [{ [T]: "User" }] },
  },
  {
    it: "completes objects of an interface by their type",
    query: "{ nodes { id ... on Bot { owner { id } } ... on User { friends { id } } } }",
    raw: { nodes: [{ [T]: "Bot", id: "b", owner: user }, { [T]: "User", id: "u", friends: [user] }, null] },
  },
  {
    it: "moves a null of an interface's field to the nullable item",
    query: "{ nodes { id ... on Bot { owner { id } } } }",
    raw: {
      nodes: [
        { [T]: "Bot", id: "b", owner: null },
        { [T]: "Bot", id: "c", owner: user },
      ],
    },
  },
  {
    it: "answers the type's name under any alias",
    query: "{ __typename hit { kind: __typename __typename } node { t: __typename } }",
    raw: { hit: { [T]: "Bot" }, node: { [T]: "User" } },
  },
  {
    it: "reads aliases by response key",
    query: "{ a: user { x: name y: name } b: user { z: id } }",
    raw: { a: { x: "1", y: "2" }, b: { z: null } },
  },
  {
    it: "merges a field that several selections ask for",
    query: "{ user { friend { id } ...F } } fragment F on User { friend { name } name friend { nick } }",
    raw: { user: { name: "x", friend: { id: "2", name: "y", nick: null } } },
  },
  {
    it: "merges fragments of an interface and its types",
    query: "{ node { ... on Node { id } ...U } } fragment U on User { name ... on Node { id } }",
    raw: { node: { [T]: "User", id: "1", name: "n" } },
  },
  {
    it: "orders members as the document does, fragments where they stand",
    query: "{ ...Q user { nick ...N id } tags } fragment Q on Query { names } fragment N on User { name }",
    raw: { tags: ["t"], user: { id: "1", name: "n", nick: "k" }, names: [] },
  },
  {
    it: "leaves out what a literal skips",
    query: "{ user { id name @skip(if: true) nick @include(if: false) age @include(if: true) } }",
    raw: { user: { id: "1", age: 3 } },
  },
  {
    it: "leaves out what a variable skips",
    query: "query ($s: Boolean!) { user { id name @skip(if: $s) ... @include(if: $s) { nick } } }",
    variables: { s: true },
    raw: { user: { id: "1", nick: "n" } },
  },
  {
    it: "keeps what a variable does not skip",
    query: "query ($s: Boolean!) { user { id name @skip(if: $s) ... @include(if: $s) { nick } } }",
    variables: { s: false },
    raw: { user: { id: "1", name: "n" } },
  },
  {
    it: "follows the default of a switch",
    query: "query ($s: Boolean = true) { user { id name @skip(if: $s) } }",
    raw: { user: { id: "1" } },
  },
  {
    it: "lets a variable override the default of a switch",
    query: "query ($s: Boolean = true) { user { id name @skip(if: $s) } }",
    variables: { s: false },
    raw: { user: { id: "1", name: null } },
  },
  {
    it: "switches a fragment spread",
    query: "query ($s: Boolean!) { user { ...F @include(if: $s) id } } fragment F on User { name }",
    variables: { s: false },
    raw: { user: { id: "1" } },
  },
  {
    it: "needs both switches of a field",
    query: "query ($a: Boolean!, $b: Boolean!) { user { id name @include(if: $a) @skip(if: $b) } }",
    variables: { a: true, b: true },
    raw: { user: { id: "1" } },
  },
];

describe("completion gives what graphql-js gives", () => {
  it.each(CASES)("and $it", ({ query, raw, variables }) => {
    expect(byCompletion(schema, query, raw, variables)).toEqual(byGraphqlJs(schema, query, raw, variables));
  });
});

describe("errors of subgraphs", () => {
  const complete = (query: string, data: Raw, errors: GraphQLError[]) => {
    const document = parse(query);
    return completionOf(schema, document, getOperationAST(document)!).variant({}).complete({ data, errors });
  };

  it("explain a null, which then gets no second error", () => {
    const error = new GraphQLError("down", { path: ["user", "name"], extensions: { code: "x" } });
    expect(complete("{ user { name } }", { user: { name: null } }, [error])).toEqual({
      data: { user: null },
      errors: [error],
    });
  });

  it("do not explain a null elsewhere", () => {
    const error = new GraphQLError("down", { path: ["user", "nick"] });
    const { errors } = complete("{ user { name nick } }", { user: {} }, [error]);
    expect(errors?.map((e) => [e.path?.join("."), e.extensions.code])).toEqual([
      ["user.nick", undefined],
      ["user.name", "missing_value"],
    ]);
  });
});

it("answers an object of a type that nobody knows with null, and leaves no marker behind", () => {
  const query = "{ hit { ... on User { id } } nodes { id } }";
  const outcome = byCompletion(schema, query, { hit: { id: "1" }, nodes: [{ [T]: "Ghost", id: "1" }] });
  expect(outcome).toEqual({ data: '{"hit":null,"nodes":[null]}', places: [] });
});

it("keeps few of the variants that a client can ask of one document", () => {
  const names = Array.from({ length: 12 }, (_, i) => `v${i}`);
  const query = `query (${names.map((n) => `$${n}: Boolean!`)}) { user { ${names.map((n, i) => `a${i}: nick @include(if: $${n})`).join(" ")} } }`;
  const document = parse(query);
  const completion = completionOf(schema, document, getOperationAST(document)!);
  for (let bits = 0; bits < 200; bits++) {
    const variables = Object.fromEntries(names.map((n, i) => [n, Boolean(bits & (1 << i))]));
    const { data } = completion.variant(variables).complete({ data: { user: {} } });
    expect(Object.keys(data!.user as object)).toHaveLength(names.filter((n) => variables[n]).length);
  }
});
