import pg from "pg";
import type { Bench } from "../bench-place.ts";
import { type BenchRow, type Outcome, percentile, spread } from "../bench-row.ts";
import type { FaceFacts } from "../face-process.ts";
import { timesOf } from "../measure.ts";

const FEW = 1_000;
const MANY = 100_000;
const TURNS = 200;
/** Most that a read may slow down from few workloads to many, next to noise. */
const MOST_TIMES = 1.5;

/** Whether a list and a single read cost the same in a team with a thousand workloads and with a hundred thousand. */
async function run(bench: Bench): Promise<Outcome[]> {
  const face = await bench.helper<FaceFacts>("face-process", "face");
  const { key, workloadIds } = face.facts.tenants.at(-1)!;
  const client = new pg.Client({ connectionString: await bench.database("face") });
  await client.connect();
  const get = (path: string) => async () => {
    const answer = await fetch(face.origin + path, { headers: { authorization: `Bearer ${key}` } });
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}`);
    await answer.arrayBuffer();
  };
  const reads = [
    { what: "list of 50", once: get("/v1/workloads?limit=50") },
    { what: "one workload", once: get(`/v1/workloads/${workloadIds[0]}`) },
  ];
  const timesAt = async (count: number) => {
    await copyWorkload(client, workloadIds[0]!, count);
    return [await timesOf(reads[0]!.once, TURNS, 50), await timesOf(reads[1]!.once, TURNS, 50)];
  };
  const few = await timesAt(FEW);
  const many = await timesAt(MANY);
  await client.end();
  return reads.map(({ what }, i) => {
    const times = percentile(many[i]!, 0.5) / percentile(few[i]!, 0.5);
    return {
      what: `${what} among ${MANY}`,
      ...{ nodus: spread(many[i]!), baseline: spread(few[i]!), ratio: `${times.toFixed(2)} ×`, cpu: "" },
      ...{ aim: `≤ ${MOST_TIMES} ×`, met: times <= MOST_TIMES },
      note: `over REST, one at a time; baseline: the same read among ${FEW}`,
    };
  });
}

/** Copies a workload within its team until there are so many copies. */
async function copyWorkload(client: pg.Client, id: string, count: number): Promise<void> {
  await client.query(
    `insert into compute.workload
     select (jsonb_populate_record(w, jsonb_build_object('id', 'wl_copy' || n, 'created_at', w.created_at - n * interval '1 second'))).*
     from compute.workload w, generate_series((select count(*) from compute.workload where id like 'wl\\_copy%') + 1, $2::int) n
     where w.id = $1`,
    [id, count],
  );
  await client.query("analyze compute.workload");
}

export const listLength: BenchRow = { name: "list-length", run };
