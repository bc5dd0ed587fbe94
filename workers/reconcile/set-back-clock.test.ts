import { afterAll, beforeAll, expect, test } from "vitest";
import type { AwaitedTime } from "../../infra/db/draw-in.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { awaitedTimes } from "../../roles/awaited-times.ts";
import { allEntities } from "../../roles/entities.ts";
import { RETRY_WAITS_MS } from "../../subgraphs/data/delivery/retry-schedule.ts";
import { computeSettings } from "../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { FilledRows } from "../../tests/support/filled-rows.ts";
import { setBackClock } from "./set-back-clock.ts";

const NOW = new Date("2026-03-01T00:00:00Z");
const HOUR_MS = 3_600_000;
const TIMES = awaitedTimes(computeSettings);

let database: TestDatabase;
let rows: FilledRows;
beforeAll(async () => {
  database = await testDatabase(allEntities);
  rows = await FilledRows.in(database.db, NOW);
});
afterAll(() => database?.close());

const ahead = (ms: number) => new Date(NOW.getTime() + ms);

/** What makes a row one that is waited for, by its table and column. */
const WAITED_FOR: Readonly<Record<string, Record<string, unknown>>> = {
  "compute.stage.next_try_at": { status: "placing" },
  "compute.attempt.next_check_at": { state: "booting" },
  "compute.attempt.boot_deadline_at": { state: "booting", offer_id: "offer" },
  "compute.attempt.gone_seen_at": { state: "running" },
  "data.webhook_delivery.due_at": { state: "pending" },
  "data.webhook_delivery.queued_until": { state: "pending" },
  "data.webhook_delivery.claimed_until": { state: "pending" },
  "data.query_export.lease_until": { state: "running" },
  "data.query_export.queued_at": { state: "pending" },
  "data.query_export.deadline_at": { state: "running" },
  "data.sink_load.lease_until": { state: "loading" },
  "data.sink_load.queued_at": { state: "pending" },
};

/** A column besides the key that no two rows may agree in. */
const UNIQUE: Readonly<Record<string, string>> = { "compute.stage": "workload_id", "data.sink_load": "name" };

/** A row that waits for a time. */
async function waiting(
  { table, key, column, where }: AwaitedTime,
  id: string,
  given: Record<string, unknown>,
): Promise<void> {
  const over = where.includes("('failed', 'ended')") && !where.includes("not in") ? { state: "failed" } : {};
  const unique = UNIQUE[table];
  await rows.insert(table, {
    [key]: id,
    ...(unique && { [unique]: id }),
    ...WAITED_FOR[`${table}.${column}`],
    ...over,
    ...given,
  });
}

async function timesOf({ table, key, column }: AwaitedTime): Promise<Record<string, Date>> {
  const found = await database.db.sql<{ id: string; at: Date }>(`select ${key} as id, ${column} as at from ${table}`);
  return Object.fromEntries(found.map(({ id, at }) => [id, at]));
}

/** One round of the reconciler; answers what it drew in. */
async function round(): Promise<unknown> {
  let told: unknown = {};
  const logger = {
    warn: (fields: { drawn: unknown }) => {
      told = fields.drawn;
    },
  } as never;
  const clock = { now: () => NOW } as never;
  const deps = { db: database.db, clock, logger, settings: computeSettings, times: TIMES };
  await setBackClock(deps).run(new AbortController().signal, null);
  return told;
}

async function evaluated(ms: number | string, table: string): Promise<number> {
  const [row] = await database.db.sql<{ ms: string }>(`select (${ms})::text as ms from ${table} t limit 1`);
  return Number(row!.ms);
}

test.each(TIMES.map((time) => ({ name: `${time.table}.${time.column}`, where: time.where, time })))(
  "$name where $where is drawn in when it lies farther ahead than it can be written, and otherwise left alone",
  async ({ name, time }) => {
    await database.db.sql(`truncate ${time.table}, compute.offer`);
    await rows.insert("compute.offer", { id: "offer", expected_boot_seconds: 100 });
    const isOutbox = time.table === "infra.outbox";
    const written = (at: Date) => (isOutbox ? { created_at: at } : {});
    await waiting(time, "far", { ...written(ahead(13 * HOUR_MS)), [time.column]: ahead(14 * HOUR_MS) });
    const farthestMs = isOutbox ? HOUR_MS : await evaluated(time.farthestMs, time.table);
    const graceMs = await evaluated(time.graceMs, time.table);
    const near = ahead(farthestMs + LIMITS.clockSkewMs);
    await waiting(time, "near", { ...written(ahead(LIMITS.clockSkewMs)), [time.column]: near });
    expect(await round()).toEqual({ [name]: 1 });
    expect(await timesOf(time)).toEqual({ near, far: ahead(graceMs) });
    expect(await round()).toEqual({});
  },
);

test("what is over waits for nothing and keeps its times", async () => {
  for (const [name, over] of Object.entries({
    "compute.stage.next_try_at": { status: "completed" },
    "data.webhook_delivery.due_at": { state: "delivered" },
    "data.query_export.lease_until": { state: "ready" },
  })) {
    const time = TIMES.find(({ table, column }) => `${table}.${column}` === name)!;
    await database.db.sql(`truncate ${time.table}`);
    await waiting(time, "over", { ...over, [time.column]: ahead(HOUR_MS) });
    await round();
    expect(await timesOf(time)).toEqual({ over: ahead(HOUR_MS) });
  }
});

test("a delivery is due as soon as it lies beyond the wait of its try, however long later waits are", async () => {
  const time = TIMES.find(({ table, column }) => `${table}.${column}` === "data.webhook_delivery.due_at")!;
  await database.db.sql(`truncate ${time.table}`);
  for (const [tries, waitMs] of [0, ...RETRY_WAITS_MS, RETRY_WAITS_MS.at(-1)!].entries()) {
    await waiting(time, `waits-${tries}`, { tries, due_at: ahead(waitMs) });
    await waiting(time, `far-${tries}`, { tries, due_at: ahead(waitMs + LIMITS.clockSkewMs + 1) });
  }
  await round();
  const due = Object.entries(await timesOf(time)).filter(([, at]) => at <= NOW);
  const waits = due.filter(([id]) => id.startsWith("waits-")).map(([id]) => id);
  expect(waits).toEqual(["waits-0"]);
  expect(due.filter(([id]) => id.startsWith("far-"))).toHaveLength(RETRY_WAITS_MS.length + 2);
});

test("a quarantine from before the clock was set back ends, and its supplier's version tells the other processes", async () => {
  await database.db.sql("truncate compute.offer, compute.supplier");
  await rows.insert("compute.supplier", { id: "s", version: 4, seen_at: NOW });
  const quarantined = (id: string, failures: number, ms: number) =>
    rows.insert("compute.offer", {
      ...{ id, sku: id, supplier: "s", failures_in_row: failures, quarantined_until: ahead(ms), version: 3 },
    });
  const { offerQuarantineMs } = computeSettings;
  await quarantined("first", 1, offerQuarantineMs);
  await quarantined("second", 2, 2 * offerQuarantineMs);
  await quarantined("far", 1, offerQuarantineMs + LIMITS.clockSkewMs + 1);
  await round();
  const offers = await database.db.sql("select id, quarantined_until as until, version from compute.offer order by id");
  expect(offers).toEqual([
    { id: "far", until: NOW, version: 5 },
    { id: "first", until: ahead(offerQuarantineMs), version: 3 },
    { id: "second", until: ahead(2 * offerQuarantineMs), version: 3 },
  ]);
  expect(await database.db.sql("select version from compute.supplier")).toEqual([{ version: 5 }]);
});

/** Columns that hold a time from before now, a deadline of somebody else's, or one that another part judges. */
const NOT_AWAITED = [
  "compute.account.month_start",
  "compute.api_key.expires_at",
  "compute.attempt.token_expires_at",
  "compute.placement.lease_expires_at",
  "compute.workload.complete_by",
  "data.webhook_delivery.retries_until",
  "compute.offer.quarantined_until",
];

test("every column whose name says that something waits for it is drawn in, or stands in a list that says why not", async () => {
  const columns = await database.db.sql<{ name: string }>(
    `select table_schema || '.' || table_name || '.' || column_name as name from information_schema.columns
     where data_type like 'timestamp%' and table_schema not in ('pg_catalog', 'information_schema')
       and column_name ~ '(_until|due_at|next_.*_at|deadline_at|expires_at|queued_at|complete_by|month_start)$' order by 1`,
  );
  const drawnIn = new Set(TIMES.map(({ table, column }) => `${table}.${column}`));
  expect(columns.map(({ name }) => name).filter((name) => !drawnIn.has(name))).toEqual([...NOT_AWAITED].sort());
});
