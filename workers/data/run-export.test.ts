import { writeFile } from "node:fs/promises";
import path from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import type { Asset } from "../../subgraphs/data/asset/asset.entity.ts";
import { ASSET_LIMITS } from "../../subgraphs/data/asset/asset-limits.ts";
import { type ExportFixture, exportFixture } from "../../tests/support/export-fixture.ts";
import { until } from "../../tests/support/until.ts";
import { abandonedExports } from "./abandoned-exports.ts";
import type { RunExportDeps } from "./run-export.ts";

let f: ExportFixture;
beforeAll(async () => {
  f = await exportFixture();
  await f.customer((client) =>
    client.query(`create table public.item (id int, name text);
      insert into public.item select i, 'item ' || i from generate_series(1, 1000) i;
      grant select, insert on public.item to customer;
      create function public.sneaky() returns int language sql as $$ insert into public.item values (-1, 'sneaked in') returning 1 $$`),
  );
}, 60_000);
afterAll(() => f?.close());

/** An export that is admitted and has not begun. */
async function requested(sql: string) {
  const actor = f.actor();
  const { id } = await f.connection(actor);
  const { asset } = await f.request(actor, { connectionId: id, sql, format: "csv" });
  return { actor, asset };
}

async function export_(sql: string, { format = "csv", ...more }: Partial<RunExportDeps> & { format?: string } = {}) {
  const actor = f.actor();
  const { id } = await f.connection(actor);
  const asset = await f.exported(actor, { connectionId: id, sql, format }, more);
  return { actor, asset, text: asset.state === "ready" ? (await f.bytesOf(asset)).toString() : null };
}

async function parquetRows(asset: Asset): Promise<unknown[][]> {
  const file = path.join(f.folder, `${asset.id}.parquet`);
  await writeFile(file, await f.bytesOf(asset));
  const instance = await DuckDBInstance.create(":memory:", { threads: "1", memory_limit: "200MB" });
  const connection = await instance.connect();
  await connection.run("set TimeZone = 'UTC'");
  return (await connection.runAndReadAll(`select * from '${file}'`)).getRowsJson() as unknown[][];
}

describe("a finished export", () => {
  test("is an ordinary ready asset, counted and told", async () => {
    const { actor, asset, text } = await export_("select id, name from item order by id limit 2 -- the first");
    expect(text).toBe("id,name\n1,item 1\n2,item 2\n");
    expect(asset).toMatchObject({
      kind: "connection_query",
      state: "ready",
      name: "data.csv",
      format: "file",
      error: null,
    });
    expect(asset).toMatchObject({ storedBytes: 26, importedBytes: 26 });
    expect(await f.exportOf(asset.id)).toMatchObject({
      state: "ready",
      rowCount: 2,
      bytes: 26,
      sql: null,
      leaseUntil: null,
    });
    expect((await f.events(actor)).map(({ type }) => type)).toEqual([
      "asset.importing",
      "export.running",
      "asset.ready",
      "export.ready",
    ]);
    expect((await f.events(actor)).at(-1)?.payload).toMatchObject({ asset_id: asset.id, row_count: 2, bytes: 26 });
    expect(await f.storage(actor)).toEqual({ storedBytes: 26, stagedBytes: 0 });
    expect(await f.db.sql("select 1 from data.connection_use where tenant_id = $1", [actor.tenantId])).toEqual([]);
    expect(await f.scratch()).toEqual([]);
  });

  test("may have no rows, and has its columns all the same", async () => {
    expect((await export_("select id, name from item where false")).text).toBe("id,name\n");
    const { asset } = await export_("select id, name from item where false", { format: "parquet" });
    expect(asset).toMatchObject({ state: "ready", name: "data.parquet" });
    expect(await parquetRows(asset)).toEqual([]);
  });

  test("keeps the order of its query", async () => {
    const { asset } = await export_("select i from generate_series(300000, 1, -1) i", { format: "parquet" });
    const rows = (await parquetRows(asset)).map(([i]) => Number(i));
    expect(rows).toEqual(Array.from({ length: 300_000 }, (_, k) => 300_000 - k));
  });

  test("reads with the version of the credential that it was admitted with", async () => {
    const actor = f.actor();
    const { id, secretId } = await f.connection(actor);
    const { asset } = await f.request(actor, { connectionId: id, sql: "select 1 as a", format: "csv" });
    await f.db.sql("update data.secret_version set retired_at = now() where secret_id = $1", [secretId]);
    await f.run(asset.id);
    expect(await f.assetOf(asset.id)).toMatchObject({ state: "ready" });
  });
});

describe("wide rows", () => {
  test("are written in row groups that fit into memory", async () => {
    const sql = "select i, repeat(md5(i::text), 30000) as wide from generate_series(1, 120) i";
    const { asset } = await export_(sql, { format: "parquet" });
    expect(asset).toMatchObject({ state: "ready", error: null });
    const [first] = (await parquetRows(asset)) as [[number, string]];
    expect([first[0], first[1].length]).toEqual([1, 960_000]);
  });

  test("that are wider than Parquet exports take fail in words, and go into CSV", async () => {
    const sql = "select repeat('x', 9000000) as wide";
    expect((await export_(sql, { format: "parquet" })).asset).toMatchObject({ state: "failed", error: "byte_limit" });
    expect((await export_(sql)).asset).toMatchObject({ state: "ready", storedBytes: 9_000_006 });
  });
});

describe("a query", () => {
  test("cannot write, not by a function and not by turning the guard off", async () => {
    const { asset } = await export_("select sneaky() as a");
    expect(asset).toMatchObject({ state: "failed", error: "query_failed" });
    expect(asset.errorMessage).toBe("The database refused the query with SQLSTATE 25006.");
    const off = await export_("select set_config('transaction_read_only', 'off', false) as a, sneaky() as b");
    expect(off.asset).toMatchObject({ state: "failed", error: "query_failed" });
    const later = await export_("select set_config('default_transaction_read_only', 'off', false) as a");
    expect(later.asset.state).toBe("ready");
    expect(await f.customer(async (c) => (await c.query("select count(*)::int from item where id < 0")).rows)).toEqual([
      { count: 0 },
    ]);
  });

  test.each([
    ["select 1 as a, 2 as a", "duplicate_columns", "Columns 1 and 2 have one name; give one of them an alias."],
    ["select 1, 2", "duplicate_columns", "Columns 1 and 2 have one name; give one of them an alias."],
    ["select", "duplicate_columns", "The query has no columns."],
    ["select * from no_such_table_hunter2", "query_failed", "The database refused the query with SQLSTATE 42P01."],
    ["select 1 / (id - 500) as a from item", "query_failed", "The database refused the query with SQLSTATE 22012."],
    ["select 'hunter2'::int as a", "query_failed", "The database refused the query with SQLSTATE 22P02."],
  ])("%s fails as %s", async (sql, error, errorMessage) => {
    const { actor, asset } = await export_(sql);
    expect(asset).toMatchObject({ state: "failed", error, errorMessage, storedBytes: 0, sha256: null });
    expect(JSON.stringify(await f.events(actor))).not.toContain("hunter2");
    expect((await f.events(actor)).at(-1)).toMatchObject({ type: "export.failed", payload: { error } });
    expect(await f.exportOf(asset.id)).toMatchObject({ state: "cleanup", cleanedAt: expect.any(Date), sql: null });
    expect(await f.scratch()).toEqual([]);
  });

  test("that gives too much is broken off, and its error says how many rows had come", async () => {
    const rows = await export_("select * from item", { resultLimits: { rows: 10, bytes: 1_000_000 } });
    expect(rows.asset).toMatchObject({ state: "failed", error: "row_limit" });
    expect(rows.asset.errorMessage).toMatch(/^The query has more than 10 rows; \d+ had come\.$/);
    const bytes = await export_("select * from item", { resultLimits: { rows: 10_000, bytes: 100 } });
    expect(bytes.asset).toMatchObject({ state: "failed", error: "byte_limit" });
  });

  test("that takes too long is ended here and at the database", async () => {
    const { asset } = await requested("select pg_sleep(600)::text as a");
    const { id: exportId } = await f.exportOf(asset.id);
    await f.db.sql("update data.query_export set deadline_at = now() + interval '2 seconds' where id = $1", [exportId]);
    await f.run(asset.id);
    expect(await f.assetOf(asset.id)).toMatchObject({ state: "failed", error: "query_timeout", storedBytes: 0 });
    await until("no query is left", async () => (await sleepers()) === 0, { timeoutMs: 5_000 });
  });

  test("does not fill the team's storage beyond its quota", async () => {
    const { asset, actor } = await export_("select * from item", {
      limits: { ...ASSET_LIMITS, quotaBytes: 100 },
    });
    expect(asset).toMatchObject({ state: "failed", error: "quota_exceeded", storedBytes: 0 });
    expect(await f.storage(actor)).toEqual({ storedBytes: 0, stagedBytes: 0 });
  });
});

const sleepers = () =>
  f.customer(async (client) => {
    const sql =
      "select count(*)::int as n from pg_stat_activity where application_name = 'nodus-export' and state = 'active'";
    return (await client.query<{ n: number }>(sql)).rows[0]!.n;
  });

describe("a process", () => {
  test.each(["is about to stop", "stops"])(
    "that %s ends its query at the database, and the export runs again elsewhere",
    async (how) => {
      const sql = "select pg_sleep(case when (select count(*) from item) > 0 then 600 else 0 end)::text as a";
      const { asset } = await requested(sql);
      const process = new AbortController();
      const leaving = how === "stops" ? {} : { leaving: process.signal };
      const running = f.run(asset.id, leaving, how === "stops" ? { signal: process.signal } : {});
      await until("the query runs", async () => (await sleepers()) === 1);
      process.abort(new Error("the process is going down"));
      await running;
      if (how === "is about to stop")
        expect(await f.run(asset.id, { leaving: process.signal })).toMatchObject({ outcome: "retry" });
      expect(await f.exportOf(asset.id)).toMatchObject({ state: "pending", leaseUntil: null, cleanedAt: null });
      expect(await f.assetOf(asset.id)).toMatchObject({ state: "importing" });
      await until("no query is left", async () => (await sleepers()) === 0, { timeoutMs: 5_000 });
      const jobs = await f.db.sql(
        "select 1 from infra.outbox where job = 'data.runExport' and payload->>'exportId' = $1",
        [(await f.exportOf(asset.id)).id],
      );
      expect(jobs).toHaveLength(2);
      expect(await f.scratch()).toEqual([]);
      await f.db.sql("update data.query_export set sql = 'select 7 as a' where asset_id = $1", [asset.id]);
      await f.run(asset.id);
      expect((await f.bytesOf(await f.assetOf(asset.id))).toString()).toBe("a\n7\n");
    },
  );

  test("whose database goes away fails the export", async () => {
    const { asset } = await requested("select pg_sleep(600)::text as a");
    const running = f.run(asset.id);
    await until("the query runs", async () => (await sleepers()) === 1);
    await f.customer((c) =>
      c.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'nodus-export'"),
    );
    await running;
    expect(await f.assetOf(asset.id)).toMatchObject({ state: "failed", error: "connection_lost" });
  });

  test("a credential that the database does not take any more fails the export", async () => {
    const actor = f.actor();
    const { id } = await f.connection(actor, { secret: f.postgres.secret({ password: "hunter2" }) });
    const asset = await f.exported(actor, { connectionId: id, sql: "select 1 as a" });
    expect(asset).toMatchObject({ state: "failed", error: "credential_inactive" });
    expect(asset.errorMessage).not.toContain("hunter2");
  });
});

describe("what is left of a failed export", () => {
  test("counts against the team's storage until it is gone", async () => {
    const { actor, asset } = await requested("select 1 as a");
    const { id: exportId } = await f.exportOf(asset.id);
    const stored = await f.objects.put(
      (async function* () {
        yield Buffer.from("left behind");
      })(),
      { maxBytes: 100 },
    );
    await f.db.sql("insert into data.asset_object (sha256, bytes, created_at) values ($1, 11, now())", [stored.sha256]);
    await f.db.sql(
      `update data.query_export set state = 'running', fence = 1, lease_until = now() - interval '1 second', bytes = 11,
         object_sha256 = $2 where id = $1`,
      [exportId, stored.sha256],
    );
    const broken: ObjectStore = Object.assign(Object.create(f.objects), {
      remove: () => Promise.reject(new Error("the store is down")),
    });
    const round = (objects: ObjectStore) =>
      abandonedExports({ db: f.db, clock: f.clock, objects, scratchDir: f.scratchDir }).run(
        new AbortController().signal,
        null,
      );
    await expect(round(broken)).rejects.toMatchObject({ kind: { code: "object_store_unavailable" } });
    expect(await f.assetOf(asset.id)).toMatchObject({ state: "failed", error: "shutdown", storedBytes: 11 });
    expect(await f.exportOf(asset.id)).toMatchObject({ state: "cleanup", cleanedAt: null });
    expect(await f.storage(actor)).toEqual({ storedBytes: 11, stagedBytes: 0 });
    await round(f.objects);
    expect(await f.storage(actor)).toEqual({ storedBytes: 0, stagedBytes: 0 });
    expect(await f.objects.has(stored.sha256)).toBe(false);
    expect(await f.exportOf(asset.id)).toMatchObject({ state: "cleanup", cleanedAt: expect.any(Date) });
  });
});
