import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import type pg from "pg";
import type { FakeClock } from "../../infra/kernel/clock.ts";
import { PrivateExceptions } from "../../infra/net/public-address.ts";
import type { Outcome } from "../../infra/queue/implement-job.ts";
import type { RunnerRecord } from "../../infra/runner/protocol.ts";
import { closeIfGone } from "../../subgraphs/compute/lifecycle/finish.commands.ts";
import { applyRecords } from "../../subgraphs/compute/lifecycle/record.commands.ts";
import { openSession } from "../../subgraphs/compute/lifecycle/session.commands.ts";
import { settle } from "../../subgraphs/compute/lifecycle/settlement.commands.ts";
import { storeResult } from "../../subgraphs/compute/output/result-object.commands.ts";
import { runResults } from "../../subgraphs/compute/output/run-results.port.ts";
import { SinkLoad } from "../../subgraphs/data/load/load.entity.ts";
import { reloadOutput } from "../../subgraphs/data/load/reload-output.ts";
import { abandonedLoads } from "../../workers/data/abandoned-loads.ts";
import { type LoadOutputDeps, loadOutputJob } from "../../workers/data/load-output.ts";
import { recordRunJob } from "../../workers/data/record-run.ts";
import { MEMBER } from "./actors.ts";
import { insertAccount, insertPlaced, TENANT } from "./compute-fixtures.ts";
import { type ComputeGraph, computeGraph } from "./compute-graph.ts";
import { insertSealedConnection, type SealedConnection } from "./connections.ts";
import { jobContext } from "./jobs.ts";
import { startTlsPostgres, type TlsPostgres } from "./tls-postgres.ts";

/** An output that a run leaves, and the table that it was declared with; null for none. */
export interface GivenOutput {
  path: string;
  content: string | Buffer;
  table: string | null;
  isTar?: boolean;
}

/** Rows with a header, which go to this table. */
export const csv = (content: string, table: string): GivenOutput => ({ path: "out/rows.csv", content, table });
/** A JSON object in each line, which go to this table. */
export const jsonl = (content: string, table: string): GivenOutput => ({ path: "rows.jsonl", content, table });

/** A run that has completed; its costs are open until `settle`. */
export interface CompletedRun {
  workloadId: string;
  placementId: string;
  settle(): Promise<void>;
}

export type LoadFixture = Awaited<ReturnType<typeof loadFixture>>;

/** The platform's database and stores beside a customer's PostgreSQL, for tests of loads. */
export async function loadFixture(shared?: TlsPostgres, graph?: ComputeGraph) {
  const [compute, postgres] = await Promise.all([graph ?? computeGraph(), shared ?? startTlsPostgres()]);
  const { db, clock, objects, secretBox } = compute;
  const folder = await mkdtemp(path.join(tmpdir(), "nodus-load-"));
  const scratchDir = path.join(folder, "scratch");
  const exceptions = new PrivateExceptions(["localhost", "127.0.0.0/8"]);
  const deps: LoadOutputDeps = { secretBox, exceptions, objects, results: runResults, scratchDir };
  const world = { db, clock };
  await insertAccount(db, clock.now());
  const connection = ({ secret: credential = postgres.secret() } = {}) =>
    insertSealedConnection(db, secretBox, clock.now(), { tenantId: TENANT, credential, scope: "readwrite" });
  /** Where outputs go unless told otherwise. */
  const shop = await connection();

  const fixture = {
    ...{ db, clock: clock as FakeClock, postgres, objects, deps, scratchDir, compute, shop },
    /** A further connection of the team to the customer's database, with another credential for it if one is given. */
    connection,
    /** Reports a run with outputs as its host would, up to the end of its stage. */
    async completedRun(
      outputs: Readonly<Record<string, GivenOutput>>,
      connection: SealedConnection = shop,
    ): Promise<CompletedRun> {
      const sink = { connectionId: connection.id, secretId: connection.secretId, secretVersion: 1 };
      const declared = Object.entries(outputs);
      const sinks = declared.filter(([, { table }]) => table !== null);
      const placed = await insertPlaced(db, clock.now(), {
        spec: {
          outputs: Object.fromEntries(declared.map(([name, given]) => [name, given.path])),
          sinks: Object.fromEntries(sinks.map(([name, given]) => [name, { ...sink, table: given.table! }])),
        },
      });
      await report(compute, placed, await stored(outputs));
      const settleRun = async () => {
        await db.sql("update compute.attempt set state = 'gone', gone_at = $2 where placement_id = $1", [
          placed.placementId,
          clock.now(),
        ]);
        await db.command((tx) => closeIfGone(tx, placed.placementId, clock.now()));
        await db.command((tx) => settle(tx, placed.placementId, clock.now()));
      };
      return { workloadId: placed.workloadId, placementId: placed.placementId, settle: settleRun };
    },
    async loadOf({ workloadId }: { workloadId: string }, name?: string): Promise<SinkLoad> {
      const [load] = await db.rows(
        SinkLoad,
        "where t.workload_id = $1 and ($2::text is null or t.name = $2) order by t.generation desc",
        [workloadId, name ?? null],
      );
      if (!load) throw new Error("there is no load");
      return load;
    },
    run: ({ id }: { id: string }, more: Partial<LoadOutputDeps> = {}, context = {}): Promise<Outcome> =>
      loadOutputJob({ ...deps, ...more }).body({ loadId: id }, jobContext(world, context)),
    recordRun: ({ id }: { id: string }): Promise<Outcome> => recordRunJob(deps).body({ loadId: id }, jobContext(world)),
    /** A run whose one output has been tried to be loaded. */
    async loaded(output: GivenOutput, more: Partial<LoadOutputDeps> = {}, connection: SealedConnection = shop) {
      const run = await fixture.completedRun({ o: output }, connection);
      await fixture.run(await fixture.loadOf(run), more);
      return { run, load: await fixture.loadOf(run) };
    },
    reload: (workloadId: string, name: string, stageId: string | null = null) =>
      reloadOutput({ db, results: runResults }, MEMBER, { workloadId, name, stageId }, clock.now()),
    reconcile: () =>
      abandonedLoads({ db, clock, results: runResults, scratchDir }).run(new AbortController().signal, null),
    /** Events of the team's stream about loads, and of the workload's own about sinks, oldest first. */
    async events(workloadId: string): Promise<{ type: string; payload: Record<string, unknown> }[]> {
      const team = "select type, payload from data.account_event where payload->>'workload_id' = $1 order by seq";
      const own =
        "select type, payload from compute.workload_event where workload_id = $1 and type like 'workload.sink%' order by seq";
      return [...(await db.sql<never>(team, [workloadId])), ...(await db.sql<never>(own, [workloadId]))];
    },
    /** What loads have on their way on this machine. */
    scratch: () => readdir(scratchDir).catch(() => [] as string[]),
    customer: <T>(work: (client: pg.Client) => Promise<T>) => postgres.admin(work),
    /** Rows of a statement in the customer's database. */
    rows: (sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
      postgres.admin(async (client) => (await client.query(sql, values)).rows),
    /** The same as whoever the connections log in as. */
    asCustomer: (sql: string): Promise<unknown> =>
      postgres.admin((client) => client.query(`set role customer; ${sql}`)),
    async close() {
      await Promise.all([graph ? null : compute.close(), shared ? null : postgres.close()]);
      await rm(folder, { recursive: true, force: true });
    },
  };

  async function stored(outputs: Readonly<Record<string, GivenOutput>>): Promise<Record<string, unknown>[]> {
    const records: Record<string, unknown>[] = [];
    for (const [name, { content, isTar = false }] of Object.entries(outputs)) {
      const bytes = Buffer.from(content);
      const object = await storeResult({ db, clock, objects }, Readable.from([bytes]), { maxBytes: bytes.length });
      records.push({ type: "output", name, ...object, media: "application/octet-stream", isTar });
    }
    return records;
  }
  return fixture;
}

const ISOLATION = { level: "bubblewrap", ownUid: true, seccomp: true, limits: "cgroup-v1", detail: "" } as const;

async function report(
  { db, clock, settings }: ComputeGraph,
  { orderId, token }: { orderId: string; token: string },
  outputs: Record<string, unknown>[],
): Promise<void> {
  const deps = { db, clock, settings, secrets: { reveal: async () => [] }, random: (n: number) => randomBytes(n) };
  const opened = await openSession(deps, { orderId, token, protocol: 1 });
  if ("refused" in opened) throw new Error(opened.message);
  let seq = 0;
  const tell = (...bodies: Record<string, unknown>[]) => {
    const records = bodies.map((body) => ({ seq: ++seq, at: clock.now().toISOString(), ...body }) as RunnerRecord);
    return applyRecords(deps, opened.session, records);
  };
  await tell({ type: "phase", phase: "running", isolation: ISOLATION, note: null });
  await clock.advance(2_000);
  await tell(
    ...outputs,
    { type: "exit", code: 0, signal: null, oom: false, killedBy: null, startFailure: null, ranMs: 2_000 },
    { type: "end", logBytes: 0, logSha256: createHash("sha256").digest("hex"), droppedUnits: 0 },
  );
}
