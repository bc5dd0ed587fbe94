import fc from "fast-check";
import { buildSchema, getOperationAST, parse } from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Served, served } from "../../tests/federation/served.ts";
import { shop } from "../../tests/federation/shop.ts";
import { documentHash } from "../documents.ts";
import { measure } from "../measure.ts";

interface Answer {
  data?: unknown;
  errors: { message: string; extensions: { code: string; detail?: { limit: unknown; seen: unknown } } }[];
}

let server: Served;
beforeAll(async () => {
  server = await served(shop(), { limits: { depth: 8, aliases: 5, rootFields: 6, tokens: 400, cost: 5_000 } });
});
afterAll(() => server.close());

async function refused(
  query: string,
  variables?: Record<string, unknown>,
): Promise<[number, string, unknown, unknown]> {
  const response = await server.post({ query, variables });
  const [error] = ((await response.json()) as Answer).errors;
  return [response.status, error!.extensions.code, error!.extensions.detail?.limit, error!.extensions.detail?.seen];
}

const nested = (levels: number) => `{ me { ${"orders { buyer { ".repeat(levels)} id ${"} }".repeat(levels)} } }`;

describe("a limit's refusal has a code and says the limit and the number seen", () => {
  it("for depth, also inside fragments", async () => {
    expect(await refused(nested(6))).toEqual([400, "query_too_deep", 8, 14]);
    const fragments = `{ me { ...A } } fragment A on Person { orders { buyer { ...B } } } fragment B on Person { ${nested(3).slice(7, -3)} }`;
    expect(await refused(fragments)).toEqual([400, "query_too_deep", 8, 10]);
  });

  it("for aliases, each spread counted", async () => {
    expect(await refused(`{ me { ${Array.from({ length: 6 }, (_, i) => `a${i}: id`).join(" ")} } }`)).toEqual([
      400,
      "too_many_aliases",
      5,
      6,
    ]);
    const bomb = `{ ${"me { ...F } ".repeat(4)} } fragment F on Person { a: id b: name }`;
    expect(await refused(bomb)).toEqual([400, "too_many_aliases", 5, 8]);
  });

  it("for fields at the root", async () => {
    expect(await refused(`{ ${"total ".repeat(7)} }`)).toEqual([400, "too_many_root_fields", 6, 7]);
  });

  it("for tokens", async () => {
    expect(await refused(`{ me { ${"id ".repeat(500)} } }`)).toEqual([400, "query_too_long", 400, "more than 400"]);
  });

  it("for cost, with page sizes from literals and variables", async () => {
    const query = "query ($n: Int) { people(first: $n) { name orders { id buyer { name } } } }";
    expect(await refused(query, { n: 1_000 })).toEqual([
      400,
      "query_too_costly",
      5_000,
      1 + 1_000 * (1 + 1 + 10 * (1 + 1 + 1)),
    ]);
    expect(await refused(query.replace("$n)", "1000)").replace("($n: Int)", ""))).toEqual([
      400,
      "query_too_costly",
      5_000,
      32_001,
    ]);
    expect((await server.post({ query, variables: { n: 10 } })).status).toBe(200);
  });

  it("on a socket as well", async () => {
    const failure = await server
      .client()
      .iterate({ query: `{ ${"total ".repeat(7)} }` })
      .next()
      .catch((errors: unknown) => errors);
    expect((failure as Answer["errors"])[0]!.extensions).toMatchObject({
      code: "too_many_root_fields",
      detail: { limit: 6, seen: 7 },
    });
  });

  it("for the rate of one key, with the time to wait", async () => {
    const slow = await served(shop(), { rateLimit: (await import("./rate-limit.ts")).memoryRateLimit(3) });
    try {
      const ask = (key: string) => slow.post({ query: "{ total }" }, { authorization: `Bearer ${key}` });
      const answers = await Promise.all(Array.from({ length: 5 }, () => ask("nk_good")));
      const late = answers.filter((a) => a.status === 429);
      expect(late).toHaveLength(2);
      expect(late[0]!.headers.get("retry-after")).toBe("1");
      expect(((await late[0]!.json()) as Answer).errors[0]).toMatchObject({
        extensions: { code: "rate_limited", detail: { limit: 3 } },
      });
      expect((await ask("nk_other")).status).toBe(200);
    } finally {
      await slow.close();
    }
  });
});

describe("documents that would be dear to validate", () => {
  it("are refused for their size before validation, however their fragments multiply", async () => {
    const fragments = Array.from(
      { length: 25 },
      (_, i) => `fragment F${i} on Person { ...F${i + 1} ...F${i + 1} }`,
    ).join(" ");
    const response = await server.post({ query: `{ me { ...F0 } } ${fragments} fragment F25 on Person { a: id }` });
    expect(((await response.json()) as Answer).errors[0]!.extensions).toMatchObject({
      code: "too_many_aliases",
      detail: { seen: 2 ** 25 },
    });
  });

  it("with fragments inside themselves are told so", async () => {
    expect((await refused("{ me { ...A } } fragment A on Person { orders { buyer { ...A } } }"))[1]).toBe(
      "GRAPHQL_VALIDATION_FAILED",
    );
  });

  it("with whole numbers that the planner cannot hold are refused", async () => {
    const ask = (number: string) => server.post({ query: `{ person(id: ${number}) { id } }` });
    for (const number of ["9223372036854775808", "-9223372036854775809", "1".repeat(300)])
      expect((await refused(`{ person(id: ${number}) { id } }`)).slice(0, 2)).toEqual([
        400,
        "GRAPHQL_VALIDATION_FAILED",
      ]);
    for (const number of ["9223372036854775807", "-9223372036854775808"])
      expect(await (await ask(number)).json()).toEqual({ data: { person: { id: number } } });
  });

  it("with descriptions run like those without", async () => {
    const query =
      '"Everything." query Described("How many." $n: Int) { people(first: $n) { ...F } } """A name.""" fragment F on Person { name }';
    const response = await server.post({ query, variables: { n: 1 } });
    expect(await response.json()).toHaveProperty("data.people");
  });

  it("with aliases that GraphQL keeps for itself are refused", async () => {
    expect((await refused("{ me { __typename: name } }"))[1]).toBe("GRAPHQL_VALIDATION_FAILED");
  });
});

describe("introspection", () => {
  it("as tools send it is not too deep", async () => {
    const open = await served(shop());
    const { getIntrospectionQuery } = await import("graphql");
    try {
      const answer = (await (await open.post({ query: getIntrospectionQuery() })).json()) as Answer;
      expect(answer.errors).toBeUndefined();
      expect(answer.data).toHaveProperty("__schema");
    } finally {
      await open.close();
    }
  });

  it("is refused where it is switched off, and data is not", async () => {
    const closed = await served(shop(), { introspection: false });
    try {
      const response = await closed.post({ query: "{ __schema { queryType { name } } }" });
      expect([response.status, ((await response.json()) as Answer).errors[0]!.extensions.code]).toEqual([
        400,
        "GRAPHQL_VALIDATION_FAILED",
      ]);
      expect((await closed.post({ query: "{ total __typename }" })).status).toBe(200);
      expect((await closed.post({ query: "{ __typename }" }, { authorization: "" })).status).toBe(401);
    } finally {
      await closed.close();
    }
  });
});

describe("with registered operations only", () => {
  const query = "{ total }";
  let closed: Served;
  beforeAll(async () => {
    closed = await served(shop(), { persisted: { operations: new Map([[documentHash(query), query]]), only: true } });
  });
  afterAll(() => closed.close());
  const hash = (text: string) => ({ extensions: { persistedQuery: { version: 1, sha256Hash: documentHash(text) } } });

  it("runs them by hash or text, over HTTP and sockets", async () => {
    expect(await (await closed.post(hash(query))).json()).toEqual({ data: { total: 1 } });
    expect(await (await closed.post({ query })).json()).toEqual({ data: { total: 1 } });
    expect((await closed.client().iterate({ query }).next()).value).toEqual({ data: { total: 1 } });
  });

  it("runs nothing else, not even once registered by a client", async () => {
    for (const body of [{ query: "{ me { id } }" }, { query: "{ me { id } }", ...hash("{ me { id } }") }]) {
      const response = await closed.post(body);
      expect([response.status, ((await response.json()) as Answer).errors[0]!.extensions.code]).toEqual([
        403,
        "not_persisted",
      ]);
    }
    const failure = await closed
      .client()
      .iterate({ query: "{ me { id } }" })
      .next()
      .catch((errors: unknown) => errors);
    expect((failure as Answer["errors"])[0]!.extensions.code).toBe("not_persisted");
  });
});

describe("measures", () => {
  const schema = buildSchema(
    "type Query { a: Query  list: [Query!]!  page(first: Int): QueryConnection } type QueryConnection { nodes: [Query!]! }",
  );
  const of = (query: string, variables = {}) => {
    const document = parse(query);
    const { cost, ...rest } = measure(schema, document, getOperationAST(document)!);
    return { ...rest, cost: cost(variables) };
  };

  it("count a page once, not again for the connection's list", () => {
    expect(of("{ page(first: 7) { nodes { __typename } } }").cost).toBe(1 + 7 * (1 + 1));
    expect(of("{ page { nodes { __typename } } }").cost).toBe(1 + 50 * 2);
    expect(of("{ list { list { __typename } } }").cost).toBe(1 + 10 * (1 + 10));
  });

  it("are the same whether fields stand in fragments or not", () => {
    const level = fc.constantFrom("a", "list", "page(first: 3) { nodes", "page(first: $n) { nodes");
    fc.assert(
      fc.property(fc.array(level, { maxLength: 8 }), (levels) => {
        const close = (l: string) => (l.includes("{") ? "} }" : "}");
        const plain = `query ($n: Int) { ${levels.map((l) => `${l} {`).join(" ")} __typename ${levels.map(close).join(" ")} }`;
        const spread = levels.reduceRight(
          (inner, l, i) => ({
            body: `${l} { ...F${i} ${close(l)}`,
            fragments: `${inner.fragments} fragment F${i} on Query { ${inner.body} }`,
          }),
          { body: "__typename", fragments: "" },
        );
        expect(of(`query ($n: Int) { ${spread.body} } ${spread.fragments}`, { n: 4 })).toEqual(of(plain, { n: 4 }));
      }),
    );
  });
});
