import { afterAll, beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { allEntities } from "../../roles/entities.ts";
import { settleAbandonedImports } from "../../subgraphs/data/asset/import/import.commands.ts";
import { CLAIM_MS } from "../../subgraphs/data/delivery/attempt.commands.ts";
import { queueDeliveries } from "../../subgraphs/data/delivery/queue-deliveries.ts";
import { settleAbandonedExports } from "../../subgraphs/data/export/abandoned-exports.ts";
import { settleAbandonedLoads } from "../../subgraphs/data/load/abandoned-loads.ts";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { FilledRows } from "../../tests/support/filled-rows.ts";
import { REPORT_EVERY_MS } from "./lease-watch.ts";

/** By the clock of the machine that has the work. */
const NOW = new Date("2026-03-01T00:00:00Z");
const TEAM = "team";
const ahead = (ms: number) => new Date(NOW.getTime() + ms);

let database: TestDatabase;
let rows: FilledRows;
beforeAll(async () => {
  database = await testDatabase(allEntities);
  rows = await FilledRows.in(database.db, NOW);
});
afterAll(() => database?.close());

/** What one machine does while another one has the work, by the clock of the first. */
const KINDS = {
  "data.query_export": {
    row: { id: "e", state: "running", lease_until: ahead(LIMITS.exportLeaseMs), deadline_at: ahead(LIMITS.exportMs) },
    lookFor: (now: Date) => settleAbandonedExports(database.db, now),
  },
  "data.sink_load": {
    row: { id: "l", state: "loading", lease_until: ahead(LIMITS.loadLeaseMs) },
    lookFor: (now: Date) => settleAbandonedLoads({ db: database.db, results: {} as never }, now),
  },
  "data.asset_import": {
    row: { asset_id: "i", lease_until: ahead(LIMITS.assetImportLeaseMs), deadline_at: ahead(LIMITS.assetImportMs) },
    lookFor: (now: Date) => settleAbandonedImports(database.db, now),
  },
  "data.webhook_delivery": {
    row: { id: "d", state: "pending", due_at: NOW, claimed_until: ahead(CLAIM_MS) },
    lookFor: (now: Date) => queueDeliveries(database.db, TEAM, now),
  },
};

/** Reports that fail or come late, one after the other, and the longest attempt to deliver. */
const HELD_UP_MS = Math.max(5 * REPORT_EVERY_MS, LIMITS.webhookAnswerMs);

test.each(Object.entries(KINDS))(
  "a machine whose clock is ahead leaves a row of %s that another one has in hand, however late that one reports",
  async (table, { row, lookFor }) => {
    await rows.insert(table, { ...row, tenant_id: TEAM });
    const all = () => database.db.sql(`select * from ${table}`);
    const before = await all();
    await lookFor(ahead(HELD_UP_MS + LIMITS.clockSkewMs));
    expect(await all()).toEqual(before);
    expect(await database.db.sql("select 1 from infra.outbox")).toEqual([]);
  },
);
