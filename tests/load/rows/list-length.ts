import pg from "pg";
import type { Bench } from "../bench-place.ts";
import { type BenchRow, type Outcome, percentile, spread } from "../bench-row.ts";
import type { FaceFacts } from "../face-process.ts";

const FEW = 1_000;
const MANY = [100_000, 1_000_000];
const TURNS = 200;
const WARM_UP = 50;
/** Longest that one statement of a fill may take. */
const FILL_MS = 90_000;
/** Most that a read may slow down from few workloads to many. */
const MOST_TIMES = 1.2;
const PATHS = { "list of 50": "?limit=50", "one workload": "/:id" } as const;

interface Team {
  read: (path: string) => Promise<void>;
  client: pg.Client;
  pattern: string;
}

/**
 * Whether a list and a single read cost the same in a team with a thousand workloads and with many more. Two platforms
 * with a database each take turns, so that what else the machine does falls on both alike.
 */
async function run(bench: Bench): Promise<Outcome[]> {
  const [few, many] = [await teamOf(bench, "list_few"), await teamOf(bench, "list_many")];
  await fill(few, FEW);
  const outcomes: Outcome[] = [];
  for (const count of MANY) {
    await fill(many, count);
    for (const [what, path] of Object.entries(PATHS)) outcomes.push(await compare(what, path, count, { few, many }));
  }
  return outcomes;
}

async function teamOf(bench: Bench, databaseName: string): Promise<Team> {
  const face = await bench.helper<FaceFacts>("face-process", databaseName);
  const { key, workloadIds } = face.facts.tenants[0]!;
  const client = new pg.Client({ connectionString: await bench.database(databaseName) });
  await client.connect();
  bench.onClose(`connection to ${databaseName}`, () => client.end());
  const read = async (path: string) => {
    const url = `${face.origin}/v1/workloads${path.replace(":id", workloadIds[0]!)}`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
    if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`);
    await answer.arrayBuffer();
  };
  return { read, client, pattern: workloadIds[0]! };
}

/** Copies a workload and its stage within its team until there are so many copies. */
async function fill({ client, pattern }: Team, count: number): Promise<void> {
  const { rows } = await client.query("select count(*)::int as n from compute.workload where id like 'wl\\_copy%'");
  await client.query(`set statement_timeout = ${FILL_MS}`);
  for (const [table, id, own] of [
    ["workload", "id", WORKLOAD],
    ["stage", "workload_id", STAGE],
  ] as const)
    await client.query(await copySql(client, table, id, own), [pattern, rows[0].n, count]);
  await client.query("vacuum (analyze) compute.workload, compute.stage");
}

/** What a copy has of its own; `n` is its number. */
const WORKLOAD = { id: "'wl_copy' || n", created_at: "p.created_at - n * interval '1 second'" };
const STAGE = { id: "'st_copy' || n", workload_id: "'wl_copy' || n" };

/** `$1` the pattern's workload, `$2` copies that are there, `$3` copies that there shall be. */
async function copySql(client: pg.Client, table: string, id: string, own: Record<string, string>): Promise<string> {
  await client.query(`alter table compute.${table} set unlogged`); // filled several times as fast, and read the same
  const { rows } = await client.query(
    "select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped",
    [`compute.${table}`],
  );
  const names: string[] = rows.map(({ name }) => name);
  const values = names.map((name) => own[name] ?? `p.${name}`);
  return `insert into compute.${table} (${names.join(", ")}) select ${values.join(", ")}
    from compute.${table} p, generate_series($2::int + 1, $3::int) n where p.${id} = $1`;
}

async function compare(what: string, path: string, count: number, teams: { few: Team; many: Team }): Promise<Outcome> {
  const fewMs: number[] = [];
  const manyMs: number[] = [];
  for (let turn = -WARM_UP; turn < TURNS; turn++)
    for (const [team, timesMs] of [[teams.few, fewMs] as const, [teams.many, manyMs] as const]) {
      const startedAt = performance.now();
      await team.read(path);
      if (turn >= 0) timesMs.push(performance.now() - startedAt);
    }
  const times = percentile(manyMs, 0.5) / percentile(fewMs, 0.5);
  return {
    what: `${what} among ${count}`,
    ...{ nodus: spread(manyMs), baseline: spread(fewMs), ratio: `${times.toFixed(2)} ×`, cpu: "" },
    ...{ aim: `≤ ${MOST_TIMES} ×`, met: times <= MOST_TIMES },
    note: `over REST, one at a time; baseline: the same read among ${FEW} on a platform of its own, in turns`,
  };
}

export const listLength: BenchRow = { name: "list-length", run };
