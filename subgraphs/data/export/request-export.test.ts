import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { Refused } from "../../../infra/kernel/refusal.ts";
import { type ExportFixture, exportFixture } from "../../../tests/support/export-fixture.ts";
import type { TlsPostgres } from "../../../tests/support/tls-postgres.ts";
import { ASSET_LIMITS } from "../asset/asset-limits.ts";
import type { ExportFields } from "./request-export.ts";

/** Nothing here reaches the customer's database. */
const UNREACHED = { secret: () => "postgres://nobody@localhost/nothing" } as unknown as TlsPostgres;
const clock = new FakeClock("2026-03-01T12:00:00Z");
const SQL = "select 1 as a";

let f: ExportFixture;
beforeAll(async () => {
  f = await exportFixture({ clock }, UNREACHED);
});
afterAll(() => f?.close());

async function refusal(work: Promise<unknown>): Promise<[code: string, field: string | undefined, status: number]> {
  const { kind, detail } = (await work.then(
    () => expect.unreachable("it was admitted"),
    (error: unknown) => error,
  )) as Refused;
  return [kind.code, detail.field, kind.status];
}

/** As if the export had been run. */
async function finish(assetId: string): Promise<void> {
  await f.db.sql("update data.query_export set state = 'ready', ended_at = $2 where asset_id = $1", [
    assetId,
    clock.now(),
  ]);
  await f.db.sql("update data.asset set state = 'ready' where id = $1", [assetId]);
}

test("an export is admitted with its connection in use, its credential pinned and a job", async () => {
  const actor = f.actor();
  const connection = await f.connection(actor, { branch: "main", region: "eu-west" });
  const { asset, reused } = await f.request(actor, { connectionId: connection.name, sql: `  ${SQL};\n` });
  expect(reused).toBe(false);
  expect(asset).toMatchObject({ state: "importing", kind: "connection_query", name: "data.parquet", storedBytes: 0 });
  expect(asset.region).toBe("eu-west");
  const row = await f.exportOf(asset.id);
  expect(row).toMatchObject({
    state: "pending",
    sql: SQL,
    branch: "main",
    format: "parquet",
    connectionId: connection.id,
  });
  expect(row.deadlineAt.getTime() - clock.now().getTime()).toBe(600_000);
  const holder = [row.id];
  expect(await f.db.sql("select 1 from data.connection_use where holder_id = $1", holder)).toHaveLength(1);
  expect(await f.db.sql("select version from data.secret_pin where holder_id = $1", holder)).toEqual([{ version: 1 }]);
  expect(await f.db.sql("select payload from infra.outbox where payload->>'exportId' = $1", holder)).toHaveLength(1);
});

test("what cannot be exported is refused by its field, and nothing is written", async () => {
  const actor = f.actor();
  const { id } = await f.connection(actor, { branch: "main" });
  const foreign = await f.connection(f.actor());
  const writes = await f.connection(actor, { scope: "write" });
  const wandb = await f.connection(actor, { kind: "wandb" });
  const plain = await f.connection(actor);
  const asked = (fields: ExportFields) => refusal(f.request(actor, { connectionId: id, sql: SQL, ...fields }));
  expect(await asked({ connectionId: null })).toEqual(["invalid_import", "/connection_id", 400]);
  expect(await asked({ sql: null })).toEqual(["invalid_query", "/sql", 400]);
  expect(await asked({ sql: "delete from a" })).toEqual(["invalid_query", "/sql", 400]);
  expect(await asked({ format: "xlsx" })).toEqual(["invalid_import", "/format", 400]);
  expect(await asked({ connectionId: "no_such" })).toEqual(["connection_not_found", "/connection_id", 400]);
  expect(await asked({ connectionId: foreign.id })).toEqual(["connection_not_found", "/connection_id", 400]);
  expect(await asked({ connectionId: writes.id })).toEqual(["connection_scope", "/connection_id", 403]);
  expect(await asked({ connectionId: wandb.id })).toEqual(["connection_kind", "/connection_id", 400]);
  expect(await asked({ branch: "other" })).toEqual(["branch_mismatch", "/branch", 400]);
  expect(await asked({ connectionId: plain.id, branch: "main" })).toEqual(["branch_mismatch", "/branch", 400]);
  expect(await f.db.sql("select 1 from data.asset where tenant_id = $1", [actor.tenantId])).toEqual([]);
  expect((await f.request(actor, { connectionId: id, sql: SQL, branch: "main" })).asset.state).toBe("importing");
});

test("a credential that was replaced or retired makes no export, and gives no finished one again", async () => {
  const actor = f.actor();
  const { id, secretId } = await f.connection(actor);
  const { asset } = await f.request(actor, { connectionId: id, sql: SQL });
  await finish(asset.id);
  await f.db.sql("update data.secret_version set retired_at = $2 where secret_id = $1", [secretId, clock.now()]);
  for (const reuse of [false, true])
    expect(await refusal(f.request(actor, { connectionId: id, sql: SQL, reuse }))).toEqual([
      ...["connection_inactive", "/connection_id", 409],
    ]);
});

test("a finished export is given again for a day to the same request, if that allows it", async () => {
  const actor = f.actor();
  const { id } = await f.connection(actor);
  const other = await f.connection(actor);
  const limits = { ...ASSET_LIMITS, importsAtOnce: 100 };
  const ask = (fields: ExportFields, of = actor) =>
    f.request(of, { connectionId: id, sql: SQL, reuse: true, ...fields }, limits);
  const first = await ask({});
  expect((await ask({})).asset.id).not.toBe(first.asset.id); // it is not ready
  await finish(first.asset.id);
  const again = await ask({ sql: `\n ${SQL}  ` });
  expect([again.reused, again.asset.id]).toEqual([true, first.asset.id]);
  for (const different of [{ sql: "select 1 as  a" }, { format: "csv" }, { connectionId: other.id }, { reuse: null }])
    expect((await ask(different)).reused, JSON.stringify(different)).toBe(false);
  await clock.advance(LIMITS.exportReuseMs - 1);
  expect((await ask({})).reused).toBe(true);
  await clock.advance(1);
  expect((await ask({})).reused).toBe(false);
});

test("a deleted export is not given again", async () => {
  const actor = f.actor();
  const { id } = await f.connection(actor);
  const { asset } = await f.request(actor, { connectionId: id, sql: SQL });
  await finish(asset.id);
  await f.db.sql("update data.asset set state = 'deleting' where id = $1", [asset.id]);
  expect((await f.request(actor, { connectionId: id, sql: SQL, reuse: true })).reused).toBe(false);
});

test("a team has two imports and exports under way at most, however they come at once", async () => {
  const actor = f.actor();
  const { id } = await f.connection(actor);
  const asked = await Promise.allSettled(
    Array.from({ length: 8 }, () => f.request(actor, { connectionId: id, sql: SQL })),
  );
  const refused = asked.filter((a) => a.status === "rejected").map((a) => (a.reason as Refused).kind.code);
  expect(refused).toEqual(Array.from({ length: 6 }, () => "imports_in_progress"));
});

test("a full storage admits no export", async () => {
  const actor = f.actor();
  const { id } = await f.connection(actor);
  const limits = { ...ASSET_LIMITS, quotaBytes: 0 };
  expect((await refusal(f.request(actor, { connectionId: id, sql: SQL }, limits)))[0]).toBe("storage_quota_exceeded");
});

test("an export that waited beyond its time has failed, and one that the queue lost is queued again", async () => {
  const actor = f.actor();
  const { id } = await f.connection(actor);
  const { asset } = await f.request(actor, { connectionId: id, sql: SQL });
  const { id: exportId } = await f.exportOf(asset.id);
  const jobs = () => f.db.sql("select 1 from infra.outbox where payload->>'exportId' = $1", [exportId]);
  await f.reconcile();
  expect(await jobs()).toHaveLength(1);
  await clock.advance(LIMITS.exportQueuedMs);
  await f.reconcile();
  await f.reconcile();
  expect(await jobs()).toHaveLength(2);
  await clock.advance(LIMITS.exportMs);
  await f.reconcile();
  expect(await f.assetOf(asset.id)).toMatchObject({ state: "failed", error: "query_timeout" });
  expect(await f.exportOf(asset.id)).toMatchObject({ state: "cleanup", cleanedAt: clock.now(), sql: null });
  expect((await f.run(asset.id)).outcome).toBe("done");
  expect(await f.assetOf(asset.id)).toMatchObject({ state: "failed" });
});

test("an export goes when its asset is forgotten", async () => {
  const actor = f.actor();
  const { id } = await f.connection(actor);
  const { asset } = await f.request(actor, { connectionId: id, sql: SQL });
  await finish(asset.id);
  await f.reconcile();
  await f.exportOf(asset.id);
  await f.db.sql("delete from data.asset where id = $1", [asset.id]);
  await f.reconcile();
  await expect(f.exportOf(asset.id)).rejects.toThrow("not there");
});
