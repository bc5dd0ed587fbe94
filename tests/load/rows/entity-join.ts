import { buildSubgraphSchema } from "@apollo/subgraph";
import { composeServices } from "@theguild/federation-composition";
import { parse } from "graphql";
import { compileQuery, isCompiledQuery } from "graphql-jit";
import { inProcess } from "../../../gateway/executors/in-process.ts";
import { createGateway } from "../../../gateway/gateway.ts";
import { createLogger } from "../../../infra/telemetry/logger.ts";
import { type BenchRow, comparedRates } from "../bench-row.ts";
import { rateOf } from "../measure.ts";

const LINK = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.6", import: ["@key"])\n`;
const RUNS =
  'type Query { runs(first: Int!): [Run!]! } type Run @key(fields: "id") { id: ID! name: String! status: String! pool: Pool! }';
const POOL_FIELDS = "id: ID! name: String! region: String! free: Int!";
const DOCUMENT = parse("query ($first: Int!) { runs(first: $first) { id name status pool { id name region free } } }");
const VARIABLES = { first: 10 };

const POOLS = new Map(
  Array.from({ length: 10 }, (_, i) => {
    const id = `pool_${i}`;
    return [id, { id, name: `Pool ${i}`, region: "eu-north", free: i }];
  }),
);
const ALL_RUNS = Array.from({ length: 10 }, (_, i) => ({
  ...{ id: `run_${i}`, name: `Run ${i}`, status: "running", pool: { id: `pool_${i}` } },
}));
const runs = (_: unknown, { first }: { first: number }) => ALL_RUNS.slice(0, first);

/** Ten runs with the pool of each from another subgraph, through planning, batching and completion, without any I/O. */
async function run() {
  const joined = await joining();
  const merged = oneSchema();
  const nodus = await rateOf(joined, { lanes: 8 });
  const baseline = await rateOf(merged, { lanes: 8 });
  const note = "10 runs and their pools in process; baseline: graphql-jit over one schema that holds both types";
  return [comparedRates({ what: "entity join without SQL", nodus, baseline, note, leastPerSecond: 8_000 })];
}

async function joining(): Promise<() => Promise<unknown>> {
  const parts = [
    {
      name: "runs",
      sdl: `${RUNS} type Pool @key(fields: "id", resolvable: false) { id: ID! }`,
      resolvers: { Query: { runs } },
    },
    {
      name: "pools",
      sdl: `type Query { pools: Int } type Pool @key(fields: "id") { ${POOL_FIELDS} }`,
      resolvers: { Pool: { __resolveReference: ({ id }: { id: string }) => POOLS.get(id) } },
    },
  ];
  const composed = composeServices(parts.map(({ name, sdl }) => ({ name, url: name, typeDefs: parse(LINK + sdl) })));
  const gateway = await createGateway({
    supergraphSdl: composed.supergraphSdl!,
    executors: parts.map(({ name, sdl, resolvers }) =>
      inProcess(
        name,
        buildSubgraphSchema([{ typeDefs: parse(LINK + sdl), resolvers: resolvers as never }]),
        (caller) => caller,
      ),
    ),
    resolveActor: async () => null,
    log: createLogger({ level: "silent", role: "bench" }),
  });
  const ask = () => gateway.execute({ document: DOCUMENT, variables: VARIABLES, actor: null, requestId: "bench" });
  requirePools((await ask()).data);
  return ask;
}

function oneSchema(): () => Promise<unknown> {
  const typeDefs = parse(`${RUNS} type Pool { ${POOL_FIELDS} }`.replace('@key(fields: "id")', ""));
  const pool = (parent: { pool: { id: string } }) => POOLS.get(parent.pool.id);
  const schema = buildSubgraphSchema([{ typeDefs, resolvers: { Query: { runs }, Run: { pool } } }]);
  const compiled = compileQuery(schema, DOCUMENT);
  if (!isCompiledQuery(compiled)) throw new Error("the document does not compile");
  const ask = async () => compiled.query(undefined, {}, VARIABLES);
  void ask().then(({ data }) => requirePools(data));
  return ask;
}

function requirePools(data: unknown): void {
  const { runs } = data as { runs: { pool: { free: number } }[] };
  if (runs.length !== 10 || runs[9]!.pool.free !== 9) throw new Error(`the join went wrong: ${JSON.stringify(data)}`);
}

export const entityJoin: BenchRow = { name: "entity-join", run };
