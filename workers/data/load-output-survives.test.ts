import type { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FakeClock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import {
  type JobTrial,
  jobContext,
  survivesBeingRunTwice,
  survivesDyingAtEveryStep,
} from "../../tests/support/jobs.ts";
import { type CompletedRun, type LoadFixture, loadFixture } from "../../tests/support/load-fixture.ts";
import { startTlsPostgres, type TlsPostgres } from "../../tests/support/tls-postgres.ts";
import { loadOutputJob } from "./load-output.ts";
import { recordRunJob } from "./record-run.ts";

let postgres: TlsPostgres;
beforeAll(async () => {
  postgres = await startTlsPostgres();
}, 60_000);
afterAll(() => postgres?.close());

interface World {
  db: LoadFixture["db"];
  clock: FakeClock;
  ports: { objects: Pick<ObjectStore, "open"> };
  /** Streams of objects: whoever died has not ended his. */
  opened: Readable[];
  fixture: LoadFixture;
  run: CompletedRun;
  loadId: string;
}

async function newWorld(): Promise<World> {
  const fixture = await loadFixture(postgres);
  const content = "id,note\n1,a\n2,\n";
  const run = await fixture.completedRun({ o: { path: "o.csv", content, table: "notes" } });
  const { id: loadId } = await fixture.loadOf(run);
  const opened: Readable[] = [];
  const open: ObjectStore["open"] = async (sha256) => {
    const object = await fixture.objects.open(sha256);
    if (object) opened.push(object.stream);
    return object;
  };
  return { db: fixture.db, clock: fixture.clock, ports: { objects: { open } }, opened, fixture, run, loadId };
}

async function teardown({ opened, fixture }: World): Promise<void> {
  for (const stream of opened) stream.destroy();
  await fixture.close();
}

const rowsOf = ({ fixture, run }: World) =>
  fixture.rows("select id, note from notes where nodus_workload_id = $1 order by id", [run.workloadId]);
const runsOf = ({ fixture, run }: World) =>
  fixture.rows("select status, cost_usd from nodus_runs where workload_id = $1", [run.workloadId]);

const loading: JobTrial<World> = {
  setup: newWorld,
  run: ({ fixture, ports, loadId, ...world }) =>
    loadOutputJob({ ...fixture.deps, objects: ports.objects }).body({ loadId }, jobContext({ ...world, ports: {} })),
  /** What a process left is taken from it, and done by another. */
  async reconcile({ clock, fixture, loadId }) {
    await clock.advance(LIMITS.loadLeaseMs + 1);
    await fixture.reconcile();
    await fixture.run({ id: loadId });
  },
  async assert(world) {
    const { db, fixture, run } = world;
    expect(await rowsOf(world)).toEqual([
      { id: "1", note: "a" },
      { id: "2", note: null },
    ]);
    expect(await runsOf(world)).toHaveLength(1);
    expect(await fixture.loadOf(run)).toMatchObject({ state: "loaded", rowCount: 2, runState: "open" });
    const told = (await fixture.events(run.workloadId)).map(({ type }) => type);
    expect(told.filter((type) => type !== "load.loading")).toEqual(["load.loaded", "workload.sink_loaded"]);
    expect(await db.sql("select 1 from data.connection_use where holder_id = $1", [world.loadId])).toHaveLength(1);
    expect(await fixture.scratch()).toEqual([]);
  },
  teardown,
};

test("a load that is run twice puts its rows there once", () => survivesBeingRunTwice(loading), 60_000);

test("a load that dies at any step is done once, and leaves nothing", async () => {
  const steps = await survivesDyingAtEveryStep(loading);
  expect(steps.some((step) => step.includes("open"))).toBe(true);
}, 150_000);

const recording: JobTrial<World> = {
  async setup() {
    const world = await newWorld();
    await world.fixture.run({ id: world.loadId });
    await world.run.settle();
    return world;
  },
  run: ({ fixture, loadId, ...world }) => recordRunJob(fixture.deps).body({ loadId }, jobContext(world)),
  async reconcile({ clock, fixture, loadId }) {
    await clock.advance(4 * LIMITS.loadQueuedMs);
    await fixture.reconcile();
    await fixture.recordRun({ id: loadId });
  },
  async assert(world) {
    const { db, fixture, run, loadId } = world;
    expect(await runsOf(world)).toEqual([{ status: "completed", cost_usd: "0.000060" }]);
    expect(await fixture.loadOf(run)).toMatchObject({ state: "loaded", runState: "final" });
    for (const table of ["connection_use", "secret_pin"])
      expect(await db.sql(`select 1 from data.${table} where holder_id = $1`, [loadId]), table).toEqual([]);
  },
  teardown,
};

test("figures of a run that are written twice are written once", () => survivesBeingRunTwice(recording), 60_000);

test("figures of a run are written whatever step their writer dies at", async () => {
  expect(await survivesDyingAtEveryStep(recording)).toEqual(["command, before its commit", "command, committed"]);
}, 60_000);
