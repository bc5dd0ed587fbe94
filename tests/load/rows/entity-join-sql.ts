import type { Bench, Served } from "../bench-place.ts";
import { type BenchRow, comparedRates, type Outcome } from "../bench-row.ts";
import type { FaceFacts } from "../face-process.ts";
import { httpRates } from "../http-load.ts";

const FIELDS = "id name status spendUsd createdAt rlEvents { nextCursor hasMore }";
const ONE = `query one($id: ID!) { workload(id: $id) { ${FIELDS} } }`;
const TEN = `query ten { workloads(first: 10) { edges { node { ${FIELDS} } } } }`;

/** Workloads of compute with a field that rl hangs on them, over HTTP, with the SQL of both. */
async function run(bench: Bench): Promise<Outcome[]> {
  const face = await bench.helper<FaceFacts>("face-process", "face");
  const bare = await bench.helper("baseline-process", "face");
  await requireEqualAnswers(face, bare);
  const { tenants } = face.facts;
  const outcome = async (what: string, query: string, path: string, note: string) => {
    const nodus = tenants.map(({ key, workloadIds }) => question(key, query, { id: workloadIds[0]! }));
    const baseline = tenants.map(({ key, workloadIds }) => ({
      ...{ method: "GET" as const, path: path.replace(":id", workloadIds[0]!) },
      headers: { authorization: `Bearer ${key}` },
    }));
    const rates = await httpRates(
      { served: face, load: { requests: nodus } },
      { served: bare, load: { requests: baseline } },
    );
    return comparedRates({ what, ...rates, note, leastShare: 0.5 });
  };
  const same = "over HTTP; baseline: a hand-written Fastify route with the same statements and authentication";
  return [
    await outcome(
      "entity join with SQL, one workload",
      ONE,
      "/joined/:id",
      `workload and RL page, 2 statements, ${same}`,
    ),
    await outcome("entity join with SQL, ten workloads", TEN, "/joined", `ten workloads, an RL page each, ${same}`),
  ];
}

function question(key: string, query: string, variables: Record<string, unknown>) {
  return {
    ...{ method: "POST" as const, path: "/graphql" },
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ query, variables }),
  };
}

async function requireEqualAnswers(face: Served<FaceFacts>, bare: Served): Promise<void> {
  const { key, workloadIds } = face.facts.tenants[0]!;
  const { method, path, headers, body } = question(key, ONE, { id: workloadIds[0]! });
  const { data } = (await (await fetch(face.origin + path, { method, headers, body })).json()) as {
    data: { workload: unknown };
  };
  const answer = await fetch(`${bare.origin}/joined/${workloadIds[0]}`, { headers });
  const [graph, route] = [JSON.stringify(data.workload), JSON.stringify(await answer.json())];
  if (graph !== route) throw new Error(`the baseline answers ${route} where the graph answers ${graph}`);
}

export const entityJoinSql: BenchRow = { name: "entity-join-sql", run };
