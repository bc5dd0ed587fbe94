import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import { type ExportFixture, exportFixture } from "../../tests/support/export-fixture.ts";
import {
  type JobTrial,
  jobContext,
  survivesBeingRunTwice,
  survivesDyingAtEveryStep,
} from "../../tests/support/jobs.ts";
import { startTlsPostgres, type TlsPostgres } from "../../tests/support/tls-postgres.ts";
import { runExportJob } from "./run-export.ts";

let postgres: TlsPostgres;
beforeAll(async () => {
  postgres = await startTlsPostgres();
}, 60_000);
afterAll(() => postgres?.close());

interface World {
  db: ExportFixture["db"];
  clock: FakeClock;
  ports: { objects: ObjectStore };
  fixture: ExportFixture;
  assetId: string;
  exportId: string;
}

const trial: JobTrial<World> = {
  async setup() {
    const clock = new FakeClock("2026-03-01T12:00:00Z");
    const fixture = await exportFixture({ clock }, postgres);
    const actor = fixture.actor();
    const { id } = await fixture.connection(actor);
    const sql = "select i, 'row ' || i as t from generate_series(1, 3) i";
    const { asset } = await fixture.request(actor, { connectionId: id, sql, format: "csv" });
    const { id: exportId } = await fixture.exportOf(asset.id);
    return { db: fixture.db, clock, ports: { objects: fixture.objects }, fixture, assetId: asset.id, exportId };
  },
  run(world) {
    const { fixture, ports, exportId } = world;
    return runExportJob({ ...fixture.deps, objects: ports.objects }).body({ exportId }, jobContext(world));
  },
  async reconcile({ clock, fixture }) {
    await clock.advance(LIMITS.exportLeaseMs + 1);
    await fixture.reconcile();
  },
  /** It is ready, or it failed because its process died; either way it was told once, and nothing is left over. */
  async assert({ db, fixture, assetId }) {
    const asset = await fixture.assetOf(assetId);
    const row = await fixture.exportOf(assetId);
    const told = await db.sql<{ type: string }>("select type from data.account_event order by seq");
    const ends = told.filter(({ type }) => /^export\.(ready|failed)$/.test(type)).map(({ type }) => type);
    if (asset.state === "ready") {
      expect((await fixture.bytesOf(asset)).toString()).toBe("i,t\n1,row 1\n2,row 2\n3,row 3\n");
      expect(row).toMatchObject({ state: "ready", rowCount: 3 });
      expect(ends).toEqual(["export.ready"]);
    } else {
      expect(asset).toMatchObject({ state: "failed", error: "shutdown", storedBytes: 0 });
      expect(row).toMatchObject({ state: "cleanup", cleanedAt: expect.any(Date) });
      expect(ends).toEqual(["export.failed"]);
    }
    for (const table of ["connection_use", "secret_pin", "asset_upload"])
      expect(await db.sql(`select * from data.${table}`), table).toEqual([]);
  },
  teardown: ({ fixture }) => fixture.close(),
};

test("an export that is run twice is made once", () => survivesBeingRunTwice(trial), 60_000);

test("an export that dies at any step is made once or has failed, and leaves nothing", async () => {
  const steps = await survivesDyingAtEveryStep(trial);
  expect(steps.some((step) => step.includes("put"))).toBe(true);
}, 120_000);
