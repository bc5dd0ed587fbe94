import { parse } from "graphql";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway, GatewayOptions } from "../../gateway/gateway.ts";
import type { Result, SubgraphExecutor, SubgraphRequest } from "../../gateway/request.ts";
import { actor, executorsOf, gatewayOver } from "./graph.ts";
import { shop } from "./shop.ts";

let gateway: Gateway;
afterEach(() => gateway?.close());

async function open(options: Partial<GatewayOptions> = {}) {
  const made = await gatewayOver(shop(), options);
  gateway = made.gateway;
  return made;
}

const run = (query: string, variables?: Record<string, unknown>): Promise<Result> =>
  gateway.execute({ document: parse(query), variables, actor: actor(), requestId: "r1" });

const errorsOf = (result: Result) => result.errors?.map((e) => ({ path: e.path, code: e.extensions.code }));

describe("the router over two subgraphs in this process", () => {
  it("joins entities of both subgraphs, two levels deep", async () => {
    await open();
    const { data, errors } = await run("{ me { name orders { id buyer { name credit } } } }");
    expect(errors).toBeUndefined();
    expect(data).toEqual({ me: { name: "Ada", orders: [{ id: "u1-o1", buyer: { name: "Person u1", credit: 5 } }] } });
  });

  it("hands the caller and the request id to resolvers", async () => {
    await open();
    expect((await run("{ whoAsks }")).data).toEqual({ whoAsks: "key_1 r1" });
  });

  it("keeps a refusal's code, status, fix and field", async () => {
    await open();
    const { data, errors } = await run("{ fault }");
    expect(data).toBeNull();
    expect(errors![0]!.extensions).toMatchObject({
      code: "forbidden",
      status: 403,
      field: "/x",
      fix: expect.any(String),
    });
    expect(errors![0]!.path).toEqual(["fault"]);
  });

  it("masks what it does not know, and logs the cause with the request id", async () => {
    const { lines } = await open();
    const { data, errors } = await run("{ boom }");
    expect(data).toEqual({ boom: null });
    expect(JSON.stringify(errors)).not.toContain("secret");
    expect(errors![0]!.extensions).toMatchObject({ code: "internal_error", requestId: "r1" });
    expect(lines.find((l) => JSON.stringify(l).includes("secret row"))).toMatchObject({ requestId: "r1" });
  });

  it("answers an operation that asks for types and data at once, keys in the order of the document", async () => {
    await open();
    const { data, errors } = await run(
      `{ a: __type(name: "Tick") { name } me { name } ...S __typename } fragment S on Query { __schema { queryType { name } } total }`,
    );
    expect(errors).toBeUndefined();
    expect(JSON.stringify(data)).toBe(
      JSON.stringify({
        a: { name: "Tick" },
        me: { name: "Ada" },
        __schema: { queryType: { name: "Query" } },
        total: 1,
        __typename: "Query",
      }),
    );
  });

  it("plans ahead without asking any subgraph, variables or not", async () => {
    let asked = 0;
    const counting = executorsOf(shop()).map(
      (executor): SubgraphExecutor => ({
        name: executor.name,
        execute(request) {
          asked++;
          return executor.execute(request);
        },
      }),
    );
    await open({ executors: counting });
    const document = parse("query ($id: ID!) { person(id: $id) { name credit } }");
    await gateway.prepare(document);
    await gateway.prepare(parse("subscription { ticks { value } }"));
    expect(asked).toBe(0);
    const result = await gateway.execute({ document, variables: { id: "u1" }, actor: actor(), requestId: "r" });
    expect(result).toEqual({ data: { person: { name: "Person u1", credit: 5 } } });
    await expect(gateway.prepare(document, "Other")).rejects.toThrow("no operation");
  });

  it("asks one subgraph directly when it can answer alone: one document for all requests, variables as they were given", async () => {
    const asked: SubgraphRequest[] = [];
    const recording = executorsOf(shop()).map(
      (executor): SubgraphExecutor => ({
        name: executor.name,
        execute(request) {
          asked.push(request);
          return executor.execute(request);
        },
      }),
    );
    await open({ executors: recording });
    const document = parse(
      "query ($first: Int = 1, $id: ID) { people(first: $first) { name } person(id: $id) { id } }",
    );
    const ask = (variables: Record<string, unknown>) =>
      gateway.execute({ document, variables, actor: actor(), requestId: "r" });
    const answers = await Promise.all([ask({ id: "u1" }), ask({ id: "u2", first: 2 })]);
    expect(answers.map(({ data }) => (data!.people as unknown[]).length)).toEqual([1, 2]);
    expect(asked.map(({ variables }) => variables)).toEqual([{ id: "u1" }, { id: "u2", first: 2 }]);
    expect(new Set(asked.map((request) => request.document)).size).toBe(1);
  });

  it("says what a variable is wrong about", async () => {
    await open();
    const result = await run("query ($id: ID!) { person(id: $id) { name } }", {});
    expect(result).not.toHaveProperty("data");
    expect(errorsOf(result)).toEqual([{ path: undefined, code: "BAD_USER_INPUT" }]);
  });
});

describe("with one subgraph down", () => {
  const down = (execute: () => Promise<never> | never) =>
    executorsOf(shop()).map((e) => (e.name === "orders" ? { name: "orders", execute } : e));

  it("keeps the others' data, and each missing value has an error with code and path", async () => {
    await open({
      executors: down(() => {
        throw new Error("connect ECONNREFUSED 10.0.0.7");
      }),
    });
    const result = await run("{ people { name credit } total sum: total }");
    expect(result.data).toEqual({
      people: [
        { name: "N1", credit: null },
        { name: "N2", credit: null },
      ],
      total: null,
      sum: null,
    });
    expect(errorsOf(result)).toEqual(
      expect.arrayContaining([
        { path: ["total"], code: "subgraph_unavailable" },
        { path: ["sum"], code: "subgraph_unavailable" },
        { path: ["people", 0, "credit"], code: "subgraph_unavailable" },
        { path: ["people", 1, "credit"], code: "subgraph_unavailable" },
      ]),
    );
    expect(result.errors).toHaveLength(4);
    expect(JSON.stringify(result.errors)).not.toContain("10.0.0.7");
  });

  it("bubbles a missing non-null value to the nearest place that can be null, without a second error", async () => {
    await open({ executors: down(() => Promise.reject(new Error("gone"))) });
    const result = await run("{ me { name orders { id } } person(id: 7) { name } }");
    expect(result.data).toEqual({ me: null, person: { name: "Person 7" } });
    expect(errorsOf(result)).toEqual([{ path: ["me", "orders"], code: "subgraph_unavailable" }]);
  });

  it("does not wait for a slow one longer than its time", async () => {
    let aborted = false;
    await open({
      subgraphTimeoutMs: 50,
      executors: executorsOf(shop()).map((e) =>
        e.name === "orders"
          ? {
              name: "orders",
              execute: (request) =>
                new Promise<never>(() => {
                  request.signal!.addEventListener("abort", () => {
                    aborted = true;
                  });
                }),
            }
          : e,
      ),
    });
    const result = await run("{ me { name credit } }");
    expect(result.data).toEqual({ me: { name: "Ada", credit: null } });
    expect(errorsOf(result)).toEqual([{ path: ["me", "credit"], code: "subgraph_timeout" }]);
    expect(aborted).toBe(true);
  });
});
