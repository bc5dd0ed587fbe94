import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { IdempotencyKey, once } from "../../infra/db/idempotency.ts";
import { enqueue, OutboxRow } from "../../infra/db/outbox.ts";
import { type Clock, FakeClock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { openDiskStore } from "../../infra/objects/disk-store.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import { defineJob } from "../../infra/queue/define-job.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { computeEntities } from "../../subgraphs/compute/entities.ts";
import { storeResult } from "../../subgraphs/compute/output/result-object.commands.ts";
import { collectAssetBytes } from "../../subgraphs/data/asset/collect-asset-bytes.ts";
import { dataEntities } from "../../subgraphs/data/entities.ts";
import { insertPlaced, TENANT } from "../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { keptFor, type RetentionDeps, retention } from "./retention.ts";

const DAY_MS = 24 * 3_600_000;
const HOUR_MS = 3_600_000;
const knownJob = defineJob<{ id: string }>({
  name: "test.known",
  queue: "test",
  attempts: 1,
  concurrency: 1,
  timeoutMs: 1_000,
});
const lostJob = defineJob<{ id: string }>({
  name: "test.lost",
  queue: "test",
  attempts: 1,
  concurrency: 1,
  timeoutMs: 1_000,
});
let database: TestDatabase;
let folder: string;
let assets: ObjectStore;
let results: ObjectStore;
let clock: FakeClock;

beforeAll(async () => {
  database = await testDatabase([...computeEntities, ...dataEntities, OutboxRow, IdempotencyKey]);
});
afterAll(() => database.close());

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "nodus-retention-"));
  assets = await openDiskStore(path.join(folder, "assets"));
  results = await openDiskStore(path.join(folder, "results"));
  clock = new FakeClock(new Date().toISOString()); // stores tell the time by the machine's clock
  const tables =
    "compute.workload, compute.placement, compute.attempt, compute.output, compute.manifest, compute.log_chunk";
  await database.db.sql(
    `truncate ${tables}, compute.result_object, data.asset_object, infra.outbox, infra.idempotency_key`,
  );
  return () => rmSync(folder, { recursive: true });
});

const round = (stores: Partial<Pick<RetentionDeps, "assets" | "results">> = {}) =>
  retention({
    ...{ db: database.db, clock, assets, results, ...stores },
    logger: createLogger({ level: "fatal", role: "test" }),
    kept: keptFor(90),
    knownJobs: [knownJob.name],
  }).run(new AbortController().signal, null);

const put = (text: string, at: Clock = clock) =>
  storeResult({ db: database.db, objects: results, clock: at }, Readable.from([Buffer.from(text)]), {
    maxBytes: 1_000,
  });

/** A settled workload with an output, a log, a manifest and a live log row, over as of now. */
async function endedWorkload(text: string): Promise<{ workloadId: string; placementId: string }> {
  const { db } = database;
  const now = clock.now();
  const placed = await insertPlaced(db, now);
  const [output, log, file] = [
    await put(`output of ${text}`),
    await put(`log of ${text}`),
    await put(`state of ${text}`),
  ];
  const where = [placed.workloadId, now] as const;
  await db.sql("update compute.workload set status = 'completed', terminal_at = $2, settled_at = $2 where id = $1", [
    ...where,
  ]);
  await db.sql(
    `update compute.placement set state = 'closed', log_bytes = $3, log_sha256 = $4, log_complete = true, log_committed_at = $2
      where workload_id = $1`,
    [...where, log.bytes, log.sha256],
  );
  await db.sql(
    `insert into compute.output (id, tenant_id, workload_id, stage_id, generation, name, sha256, bytes, media, is_tar, created_at)
     values ('up_' || $1, $3, $1, 'main', 1, 'out', $4, $5, 'text/plain', false, $2)`,
    [...where, TENANT, output.sha256, output.bytes],
  );
  await db.sql(
    `insert into compute.manifest (id, tenant_id, workload_id, stage_id, generation, sequence, final, manifest, created_at)
     values ('manifest_' || $1, $3, $1, 'main', 1, 1, true, $4, $2)`,
    [...where, TENANT, JSON.stringify({ files: [{ path: "state", sha256: file.sha256, bytes: file.bytes }] })],
  );
  await db.sql(
    `insert into compute.log_chunk (workload_id, seq, tenant_id, placement_id, stage_id, generation, byte_offset, bytes, created_at)
     values ($1, 1, $3, $4, 'main', 1, 0, 'x', $2)`,
    [...where, TENANT, placed.placementId],
  );
  return placed;
}

const counts = async (workloadId: string) => {
  const [row] = await database.db.sql(
    `select (select count(*)::int from compute.output where workload_id = $1 and removed_at is null) as outputs,
       (select count(*)::int from compute.placement where workload_id = $1 and log_removed_at is null) as logs,
       (select count(*)::int from compute.manifest where workload_id = $1) as manifests,
       (select count(*)::int from compute.log_chunk where workload_id = $1) as chunks,
       (select count(*)::int from compute.placement where workload_id = $1) as placements,
       (select count(*)::int from compute.attempt where workload_id = $1) as attempts`,
    [workloadId],
  );
  return row;
};
const stored = async () => (await results.list({ limit: 100 })).length;
const KEPT = { outputs: 1, logs: 1, manifests: 1, chunks: 1, placements: 1, attempts: 1 };

test("results go ninety days after the end, and not a moment before", async () => {
  const { workloadId } = await endedWorkload("one");
  clock.advance(90 * DAY_MS);
  await round();
  expect(await counts(workloadId)).toEqual(KEPT);
  expect(await stored()).toBe(3);
  clock.advance(1);
  await round();
  expect(await counts(workloadId)).toEqual({ ...KEPT, outputs: 0, logs: 0, manifests: 0, chunks: 0 });
  expect(await stored()).toBe(0);
  await round();
  expect(await counts(workloadId)).toEqual({ ...KEPT, outputs: 0, logs: 0, manifests: 0, chunks: 0 });
});

test("bytes that a younger workload made as well stay until its time is over", async () => {
  await endedWorkload("same");
  clock.advance(30 * DAY_MS);
  const younger = await endedWorkload("same");
  clock.advance(61 * DAY_MS);
  await round();
  expect(await counts(younger.workloadId)).toEqual(KEPT);
  expect(await stored()).toBe(3);
  clock.advance(30 * DAY_MS);
  await round();
  expect(await stored()).toBe(0);
});

test("a workload that is not settled keeps everything, however old", async () => {
  const { workloadId } = await endedWorkload("unsettled");
  await database.db.sql("update compute.workload set settled_at = null where id = $1", [workloadId]);
  clock.advance(500 * DAY_MS);
  await round();
  expect(await counts(workloadId)).toEqual(KEPT);
});

test("where a workload ran is forgotten a year after its end", async () => {
  const { workloadId } = await endedWorkload("year");
  clock.advance(365 * DAY_MS);
  await round();
  expect(await counts(workloadId)).toMatchObject({ placements: 1, attempts: 1 });
  clock.advance(1);
  await round();
  expect(await counts(workloadId)).toMatchObject({ placements: 0, attempts: 0 });
  expect(await database.db.sql("select 1 from compute.workload where id = $1", [workloadId])).toHaveLength(1);
});

test("bytes that nothing ever referred to go after a day, with and without a row", async () => {
  await put("claimed, and its record never came");
  await results.put(Readable.from([Buffer.from("never claimed")]), { maxBytes: 100 });
  await assets.put(Readable.from([Buffer.from("never claimed")]), { maxBytes: 100 });
  clock.advance(23 * HOUR_MS);
  await round();
  await collectAssetBytes({ db: database.db, objects: assets, clock });
  expect([await stored(), (await assets.list({ limit: 9 })).length]).toEqual([2, 1]);
  clock.advance(2 * HOUR_MS);
  await round();
  await collectAssetBytes({ db: database.db, objects: assets, clock });
  expect([await stored(), (await assets.list({ limit: 9 })).length]).toEqual([0, 0]);
});

test("a store that is away keeps nothing else from ending", async () => {
  const { workloadId } = await endedWorkload("away");
  clock.advance(91 * DAY_MS);
  const away = async () => {
    throw new Error("the store is away");
  };
  const stores = { assets: { list: away }, results: { list: away, remove: away } };
  await expect(round(stores)).rejects.toThrow("3 of 7 steps failed");
  expect(await counts(workloadId)).toMatchObject({ outputs: 0, logs: 0 });
  clock.advance(LIMITS.removalLeaseMs + 1);
  await round();
  expect(await stored()).toBe(0);
});

test("a key lives as long as its object", async () => {
  const { db } = database;
  const placed = await insertPlaced(db, clock.now());
  const keyed = (key: string, objectId: string) =>
    db.command((tx) =>
      once(tx, { tenantId: TENANT, operation: "createWorkload", key, payload: {}, now: clock.now() }, objectId),
    );
  await keyed("kept", placed.workloadId);
  await keyed("gone", "wl_gone");
  await keyed("unknown", "thing_1");
  clock.advance(1_000 * DAY_MS);
  await round();
  const rows = await db.sql<{ object_id: string }>("select object_id from infra.idempotency_key order by object_id");
  expect(rows.map((row) => row.object_id)).toEqual(["thing_1", placed.workloadId]);
});

test("jobs that no process knows are given up after thirty days, others never", async () => {
  await database.db.command(async (tx) => {
    for (const job of [knownJob, lostJob]) await enqueue(tx, job, { id: "1" }, clock.now());
  });
  const jobs = async () =>
    (await database.db.sql<{ job: string }>("select job from infra.outbox order by 1")).map((r) => r.job);
  clock.advance(30 * DAY_MS);
  await round();
  expect(await jobs()).toEqual([knownJob.name, lostJob.name]);
  clock.advance(1);
  await round();
  expect(await jobs()).toEqual([knownJob.name]);
});
