import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ExportFixture, exportFixture } from "../../tests/support/export-fixture.ts";
import {
  done,
  type HostilePostgres,
  message,
  send,
  startHostilePostgres,
} from "../../tests/support/hostile-postgres.ts";
import { until } from "../../tests/support/until.ts";

let f: ExportFixture;
let hostile: HostilePostgres;
beforeAll(async () => {
  [f, hostile] = await Promise.all([exportFixture(), startHostilePostgres()]);
}, 60_000);
afterAll(async () => {
  await Promise.all([f?.close(), hostile?.close()]);
});

async function requested(actor = f.actor(), format = "csv") {
  const { id } = await f.connection(actor, { secret: hostile.secret });
  const { asset } = await f.request(actor, { connectionId: id, sql: "select 1 as a", format });
  return { actor, asset };
}

test("an export from a database that answers nonsense fails as a lost connection", async () => {
  for (const at of ["startup", "statement", "describe", "copyOut"] as const) {
    hostile.attack = { at, act: send(message("T", "\xff\xff")) };
    const { asset } = await requested();
    await f.run(asset.id);
    expect([at, await f.assetOf(asset.id)]).toEqual([
      at,
      expect.objectContaining({ state: "failed", error: "connection_lost" }),
    ]);
  }
  expect(await f.scratch()).toEqual([]);
  await until("every connection is gone", () => hostile.open() === 0);
});

test("rows that are not what the database said they are fail as its own fault, in words", async () => {
  const lies = [
    ['"one"\n', 1],
    ["one\n", 1],
    ['"1","2"\n', 1],
    ['"\xff"\n', 1],
    ['"1\n', 0],
    ['"1"\r\n', 1],
    ['"1"x\n', 1],
  ] as const;
  for (const [text, rows] of lies) {
    const copied = [message("H", "\0\0\0"), message("d", text), message("c"), done(`COPY ${rows}`)];
    const act = (client: TLSSocket) => {
      client.write(Buffer.concat(copied));
      client.once("data", () => client.write(done("COMMIT")));
    };
    hostile.attack = { at: "copyOut", act };
    const { asset } = await requested(f.actor(), "parquet");
    await f.run(asset.id);
    const failed = {
      state: "failed",
      error: "query_failed",
      errorMessage: expect.stringMatching(/^The database sent /),
    };
    expect([text, await f.assetOf(asset.id)]).toEqual([text, expect.objectContaining(failed)]);
  }
  expect(await f.scratch()).toEqual([]);
}, 60_000);

test("a process that is to stop gives back an export whose database is silent, wherever it fell silent", async () => {
  for (const at of ["startup", "statement", "describe", "copyOut"] as const) {
    hostile.attack = { at, act: () => {} };
    const { asset } = await requested();
    const leaving = new AbortController();
    const run = f.run(asset.id, { leaving: leaving.signal });
    await until("the database is asked", () => hostile.open() > 0);
    setTimeout(() => leaving.abort(), 100);
    const startedMs = performance.now();
    await run;
    expect(performance.now() - startedMs).toBeLessThan(15_000); // the login's time limit, which would end it as well
    expect([at, (await f.exportOf(asset.id)).state]).toEqual([at, "pending"]);
    await until("every connection is gone", () => hostile.open() === 0);
  }
}, 60_000);

test("a team's second export waits for the end of its first, which sends for it; another team's does not wait", async () => {
  hostile.attack = { at: "copyOut", act: () => {} };
  const { actor, asset: first } = await requested();
  const leaving = new AbortController();
  const run = f.run(first.id, { leaving: leaving.signal });
  await until("the first runs", async () => (await f.exportOf(first.id)).state === "running");
  const { asset: second } = await requested(actor);
  await f.run(second.id);
  expect((await f.exportOf(second.id)).state).toBe("pending");

  const other = f.actor();
  const { id } = await f.connection(other);
  expect(await f.exported(other, { connectionId: id, sql: "select 1 as a", format: "csv" })).toMatchObject({
    state: "ready",
  });

  const { id: secondId } = await f.exportOf(second.id);
  const sentFor = async () =>
    (await f.db.sql<{ payload: unknown }>("select to_jsonb(o) as payload from infra.outbox o")).filter(({ payload }) =>
      JSON.stringify(payload).includes(secondId),
    ).length;
  const before = await sentFor();
  await f.db.sql("update data.query_export set deadline_at = now() where asset_id = $1", [first.id]);
  leaving.abort();
  await run;
  await f.reconcile();
  expect((await f.exportOf(first.id)).state).toBe("cleanup");
  expect(await sentFor()).toBe(before + 1);
  hostile.attack = null;
  await f.run(second.id);
  expect((await f.assetOf(second.id)).state).toBe("ready");
}, 60_000);
