import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { teamKey } from "../../../tests/support/actors.ts";
import { insertConnection } from "../../../tests/support/connections.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { dataEntities } from "../entities.ts";
import { putSecret } from "../secret/secret.commands.ts";
import { SecretBox } from "../secret/secret-box.ts";
import { deleteConnection } from "./connection.commands.ts";
import { Connection } from "./connection.entity.ts";
import { pinConnection, releaseConnections } from "./connection-uses.ts";
import { sweepConnections } from "./sweep-connections.ts";

const clock = new FakeClock("2026-03-01T12:00:00Z");
const actor = teamKey("team_1");
const { tenantId } = actor;
let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase(dataEntities);
  const deps = { db: database.db, box: new SecretBox({ id: "mk-1", key: randomBytes(32) }) };
  await putSecret(deps, actor, { name: "DB", value: "postgres://a:b@example.com/db" }, clock.now());
});
afterAll(() => database?.close());

const make = (name: string) =>
  insertConnection(database.db, tenantId, clock.now(), { name, kind: "postgres", secret: "DB" });
const remove = (id: string) => deleteConnection(database.db, actor, id, clock.now());
const sweep = (limit?: number) => sweepConnections(database.db, clock.now(), limit);
const left = async () =>
  (await database.db.rows(Connection, "where t.tenant_id = $1 order by t.name", [tenantId])).map(({ name }) => name);

test("deleted connections are forgotten after 30 days, some at a time, and those in use are not touched", async () => {
  await make("kept");
  for (const name of ["a", "b", "c"]) await remove(await make(name));
  await clock.advance(LIMITS.deletedConnectionMs);
  expect(await sweep()).toBe(0);
  await clock.advance(1);
  expect(await sweep(2)).toBe(2);
  expect(await sweep(2)).toBe(1);
  expect(await sweep(2)).toBe(0);
  expect(await left()).toEqual(["kept"]);
});

test("a deleted connection stays while an export, a load or a run that was admitted before refers to it", async () => {
  const { db } = database;
  const [exported, loaded, used] = [await make("exported"), await make("loaded"), await make("used")];
  const row = (await db.row(Connection, "where t.id = $1", [used]))!;
  for (const id of [exported, loaded, used]) await remove(id);
  await db.sql(
    `insert into data.query_export (id, tenant_id, asset_id, connection_id, secret_id, secret_version, query_hash, format,
       state, created_at, deadline_at, queued_at, fence)
     values ('exp_1', $1, 'asset_1', $2, 'sec_1', 1, 'h', 'csv', 'ready', $3, $3, $3, 1)`,
    [tenantId, exported, clock.now()],
  );
  await db.sql(
    `insert into data.sink_load (id, tenant_id, workload_id, stage_id, generation, name, connection_id, secret_id,
       secret_version, target_table, path, sha256, bytes, is_tar, state, attempts, fence, queued_at, run_state, created_at)
     values ('load_1', $1, 'wl_1', 'main', 1, 'rows', $2, 'sec_1', 1, 't', 'rows.csv', 'h', 1, false, 'loaded', 1, 1, $3,
       'final', $3)`,
    [tenantId, loaded, clock.now()],
  );
  const keep = { secretId: row.secretId, version: row.secretVersion };
  const ask = { tenantId, connectionId: used, holderId: "load_2", now: clock.now(), keep };
  await clock.advance(LIMITS.deletedConnectionMs + 1);
  await db.command(async (tx) => {
    await pinConnection(tx, ask);
    expect(await sweep()).toBe(0); // a use that is being written holds the row
  });
  expect(await sweep()).toBe(0);
  expect(await left()).toEqual(["exported", "kept", "loaded", "used"]);
  await db.command((tx) => releaseConnections(tx, "load_2"));
  await db.sql("delete from data.query_export");
  await db.sql("delete from data.sink_load");
  expect(await sweep()).toBe(3);
  expect(await left()).toEqual(["kept"]);
});
