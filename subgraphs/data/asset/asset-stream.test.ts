import { afterAll, beforeAll, expect, test } from "vitest";
import { Sleepers } from "../../../infra/live/wakeups.ts";
import { type ImportFixture, importFixture } from "../../../tests/support/import-fixture.ts";
import { answer } from "../../../tests/support/source-server.ts";
import { until } from "../../../tests/support/until.ts";
import { type AssetChange, followAsset } from "./asset-stream.ts";

let f: ImportFixture;
const sleepers = new Sleepers((error) => {
  throw error;
});
const wakeups = { on: (topic: string, wake: () => void) => sleepers.on(topic, wake), healthy: true };
beforeAll(async () => {
  f = await importFixture();
  f.db.announceTo((topic) => sleepers.wake(topic));
}, 60_000);
afterAll(() => f?.close());

const follow = (tenantId: string, assetId: string, after = 0) =>
  followAsset({ db: f.db, wakeups }, { tenantId, assetId, after });
async function all(stream: AsyncIterable<AssetChange>): Promise<AssetChange[]> {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

test("an import is followed from its admission to its end, and again from any item on", async () => {
  const actor = f.team();
  const held = Promise.withResolvers<void>();
  f.servers.web.routes.set("/held", (_, response) => {
    response.writeHead(200).write("half");
    void held.promise.then(() => response.end(" whole"));
  });
  const { asset } = await f.admit(actor, { kind: "url", url: `${f.servers.web.origin}/held` });
  const following = all(await follow(actor.tenantId, asset.id));
  const running = f.run(asset.id);
  await until("half is reported", async () => {
    await f.clock.advance(2_000);
    return (await f.get(actor, asset.id)).importedBytes === 4;
  });
  held.resolve();
  await running;
  const items = await following;
  expect(items.map((i) => i.complete)).toEqual([...items.slice(1).map(() => false), true]);
  expect(items[0]!.asset).toMatchObject({ state: "importing", importedBytes: 0 });
  expect(items.some((i) => i.asset!.importedBytes === 4 && i.asset!.state === "importing")).toBe(true);
  expect(items.at(-1)!.asset).toMatchObject({ state: "ready", storedBytes: 10 });
  const cursors = items.map((i) => i.cursor);
  expect(cursors).toEqual([...new Set(cursors)].sort((a, b) => a - b));
  for (const item of items) {
    const again = await all(await follow(actor.tenantId, asset.id, item.cursor));
    expect(again).toEqual([items.at(-1)]);
  }
});

test("who follows a failed import hears why; a deletion is heard of too", async () => {
  const actor = f.team();
  f.servers.web.routes.set("/refused", answer("", {}, 403));
  const failed = await f.import(actor, { kind: "url", url: `${f.servers.web.origin}/refused` });
  expect(await all(await follow(actor.tenantId, failed.id))).toMatchObject([
    { asset: { state: "failed", error: "source_unauthorized" }, complete: true },
  ]);
  await f.remove(actor, failed.id);
  expect(await all(await follow(actor.tenantId, failed.id))).toMatchObject([
    { asset: { state: "deleted" }, complete: true },
  ]);
});

test("another team follows nothing", async () => {
  const asset = await f.upload(f.team(), "a", "x");
  await expect(follow(f.team().tenantId, asset.id)).rejects.toMatchObject({ kind: { code: "not_found" } });
  await expect(follow(f.team().tenantId, "asset_0")).rejects.toMatchObject({ kind: { code: "not_found" } });
});
