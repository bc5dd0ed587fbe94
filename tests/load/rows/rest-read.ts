import type { Bench } from "../bench-place.ts";
import { type BenchRow, comparedRates, type Outcome } from "../bench-row.ts";
import type { FaceFacts } from "../face-process.ts";
import { httpRates } from "../http-load.ts";

/** `GET /v1/workloads/{id}`: the REST face runs it as a document of the graph. */
async function run(bench: Bench): Promise<Outcome[]> {
  const face = await bench.helper<FaceFacts>("face-process", "face");
  const bare = await bench.helper("baseline-process", "face");
  const requests = face.facts.tenants.flatMap(({ key, workloadIds }) =>
    workloadIds.slice(0, 2).map((id) => ({
      ...{ method: "GET" as const, path: `/v1/workloads/${id}` },
      headers: { authorization: `Bearer ${key}` },
    })),
  );
  await requireEqualAnswers(face.origin, bare.origin, requests[0]!);
  const rates = await httpRates({ served: face, load: { requests } }, { served: bare, load: { requests } });
  const note = "6 statements; baseline: a hand-written Fastify route with the same SQL, authentication and checks";
  return [comparedRates({ what: "REST read of a workload", ...rates, note, leastShare: 0.6 })];
}

async function requireEqualAnswers(
  nodus: string,
  baseline: string,
  ask: { path: string; headers: { authorization: string } },
) {
  const read = async (origin: string) => {
    const answer = await fetch(origin + ask.path, { headers: ask.headers });
    return JSON.stringify(inOrder(await answer.json())).replace(/"as_of":"[^"]*"/, "");
  };
  const [graph, route] = [await read(nodus), await read(baseline)];
  if (graph !== route) throw new Error(`the baseline answers ${route} where the platform answers ${graph}`);
}

/** The same document with members sorted by name. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort()
      .map(([name, member]) => [name, inOrder(member)]),
  );
}

export const restRead: BenchRow = { name: "rest-read", run };
