import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Database } from "../../infra/db/database.ts";
import { OutboxRow } from "../../infra/db/outbox.ts";
import { isWaitForOthersOver } from "../../infra/db/unavailable.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { runResults } from "../../subgraphs/compute/output/run-results.port.ts";
import { claimImport } from "../../subgraphs/data/asset/import/import-claim.ts";
import { claimAttempt } from "../../subgraphs/data/delivery/attempt.commands.ts";
import { dataEntities } from "../../subgraphs/data/entities.ts";
import { claimExport } from "../../subgraphs/data/export/export-claim.ts";
import { settleAbandonedLoads } from "../../subgraphs/data/load/abandoned-loads.ts";
import { claimLoad } from "../../subgraphs/data/load/load-claim.ts";
import { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";

const NOW = new Date("2026-03-01T00:00:00Z");
const POOL = 4;
const box = new SecretBox({ id: "mk-1", key: randomBytes(32) });

let database: TestDatabase;
/** The platform's, with few connections. */
let db: Database;
/** Whoever holds rows. */
let holder: pg.Client;
beforeAll(async () => {
  database = await testDatabase([...dataEntities, OutboxRow]);
  holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
}, 60_000);
afterAll(async () => {
  await holder?.end();
  await database?.close();
});
beforeEach(async () => {
  await database.db.sql(
    "truncate data.webhook_delivery, data.sink_load, data.query_export, data.asset_import, data.connection_use",
  );
  db = await Database.open({ url: database.url, entities: dataEntities, poolSize: POOL });
  return () => db.close();
});

const DELIVERY = `insert into data.webhook_delivery (id, tenant_id, event_type, body, state, attempts, tries, attempt_log, due_at, retries_until, created_at)
  values ($1, $2, 'workload.completed', '{}', 'pending', 0, 0, '[]', $3, $3, $3)`;
const EXPORT = `insert into data.query_export (id, tenant_id, asset_id, connection_id, secret_id, secret_version, query_hash, format, state, created_at, deadline_at, queued_at, fence)
  values ($1, $2, 'as_1', 'cn_1', 'sec_1', 1, 'h', 'csv', 'pending', $3, $3, $3, 0)`;
const IMPORT = `insert into data.asset_import (asset_id, tenant_id, resumable, fence, lease_until, deadline_at, created_at, ciphertext, wrapped_key, master_key_id)
  values ($1, $2, true, 0, $3, $3::timestamptz + case when $2 = 'a' then interval '1 hour' else interval '0' end, $3, '', '', 'mk-1')`;
const LOAD = `insert into data.sink_load (id, tenant_id, workload_id, stage_id, generation, name, connection_id, secret_id, secret_version, target_table, path, sha256, bytes, is_tar, state, attempts, fence, queued_at, run_state, created_at)
  values ($1, $2, 'wl_' || $1, 'main', 1, 'o', 'cn_1', 'sec_1', 1, 't', 'o.csv', 'x', 1, false, 'failed', 0, 0, $3, 'none', $3)`;

/** A row of each of two teams that a job is told of; there is nothing to do for either. */
const KINDS: readonly [string, { insert: string; table: string; claim: (id: string) => Promise<unknown> }][] = [
  ["deliveries", { insert: DELIVERY, table: "data.webhook_delivery", claim: (id) => claimAttempt(db, box, id, NOW) }],
  ["exports", { insert: EXPORT, table: "data.query_export", claim: (id) => claimExport(db, id, NOW) }],
  ["imports", { insert: IMPORT, table: "data.asset_import", claim: (id) => claimImport(db, box, id, NOW) }],
  ["loads", { insert: LOAD, table: "data.sink_load", claim: (id) => claimLoad(db, id, NOW) }],
];

test.each(KINDS)(
  "a team whose %s somebody holds leaves other teams their connections",
  async (_kind, kind) => {
    for (const team of ["a", "b"]) await database.db.sql(kind.insert, [`id_${team}`, team, NOW]);
    await holder.query(`begin; select 1 from ${kind.table} where tenant_id = 'a' for update`);
    try {
      let over = 0;
      const waiting = Array.from({ length: 3 * POOL }, () =>
        kind.claim("id_a").catch((error: unknown) => {
          over++;
          return error;
        }),
      );
      for (let n = 0; n < 20; n++) expect(await kind.claim("id_b")).toBeNull();
      expect(over).toBeLessThan(3 * POOL); // the other team was served while this one waited
      const ends = await Promise.all(waiting);
      expect(ends.map(isWaitForOthersOver)).toEqual(ends.map(() => true));
    } finally {
      await holder.query("rollback");
    }
  },
  30_000,
);

test("figures of loads that nobody could write are given up team by team: one that is held keeps no other's credential", async () => {
  for (const team of ["a", "b"]) {
    await database.db.sql(LOAD, [`id_${team}`, team, NOW]);
    await database.db.sql(
      "insert into data.connection_use (holder_id, connection_id, tenant_id, created_at) values ($1, 'cn_1', $2, $3)",
      [`id_${team}`, team, NOW],
    );
  }
  await database.db.sql("update data.sink_load set state = 'loaded', run_state = 'due', attempts = $1", [
    LIMITS.loadRunAttempts - 1,
  ]);
  const later = new Date(NOW.getTime() + LIMITS.loadQueuedMs * 2 ** LIMITS.loadRunAttempts);
  const settle = () => settleAbandonedLoads({ db, results: runResults }, later);
  const loads = () => database.db.sql("select tenant_id as team, run_state from data.sink_load order by team");
  const uses = () => database.db.sql("select tenant_id as team from data.connection_use");
  await holder.query("begin; select 1 from data.connection_use where tenant_id = 'a' for update");
  try {
    await expect(settle()).rejects.toMatchObject({ name: "StepsHeld", steps: 1 });
    expect(await loads()).toEqual([
      { team: "a", run_state: "due" },
      { team: "b", run_state: "lost" },
    ]);
    expect(await uses()).toEqual([{ team: "a" }]);
  } finally {
    await holder.query("rollback");
  }
  const settled = async () => {
    await settle().catch((error: Error) => expect(error.name).toBe("StepsHeld")); // a while later at the earliest
    return uses();
  };
  await expect.poll(settled, { timeout: 15_000 }).toEqual([]);
  expect(await loads()).toEqual([
    { team: "a", run_state: "lost" },
    { team: "b", run_state: "lost" },
  ]);
}, 30_000);
