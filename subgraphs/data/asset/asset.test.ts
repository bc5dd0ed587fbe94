import { afterAll, beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { type AssetFixture, assetFixture } from "../../../tests/support/asset-fixture.ts";
import { listAssets } from "./asset.commands.ts";
import { Asset } from "./asset.entity.ts";
import { assetPins } from "./asset-pins.ts";

const DAY_MS = 86_400_000;
let f: AssetFixture;
beforeAll(async () => {
  f = await assetFixture();
});
afterAll(() => f?.close());

test("an asset that a holder keeps cannot be deleted; then it is deleted once, and read for thirty days", async () => {
  const actor = f.team();
  const asset = await f.upload(actor, "data.csv", "a,b\n");
  const pinned = { id: asset.id, name: "data.csv", sha256: asset.sha256, bytes: 4, format: "file" };
  expect(await f.pin(actor, [asset.id, asset.id], "wl_1")).toEqual([pinned, pinned]);
  expect(await f.pin(actor, [asset.id], "wl_1")).toEqual([pinned]);
  await expect(f.remove(actor, asset.id)).rejects.toMatchObject({
    kind: { code: "asset_in_use", status: 409 },
    detail: { extra: { holder_id: "wl_1" } },
  });
  await f.db.command((tx) => assetPins.release(tx, "wl_1", f.clock.now()));
  expect(await f.remove(actor, asset.id)).toMatchObject({ state: "deleted", storedBytes: 0, deletedAt: f.clock.now() });
  await expect(f.remove(actor, asset.id)).rejects.toMatchObject({ kind: { code: "not_found" } });
  expect(await listAssets(f.db, actor.tenantId, null, 10)).toEqual([]);
  expect(await f.get(actor, asset.id)).toMatchObject({ state: "deleted" });
  await f.clock.advance(30 * DAY_MS);
  expect(await f.get(actor, asset.id)).toBeNull();
  await f.collect();
  expect(await f.db.row(Asset, "where t.id = $1", [asset.id])).not.toBeNull();
  await f.clock.advance(1);
  await f.collect();
  expect(await f.db.row(Asset, "where t.id = $1", [asset.id])).toBeNull();
});

test("references are refused by their place in the body", async () => {
  const actor = f.team();
  const asset = await f.upload(actor, "a", "x");
  const check = (assetIds: string[], field: string | ((i: number) => string)) =>
    assetPins.check(f.db, { tenantId: actor.tenantId, assetIds, field });
  await check([asset.id], "/source/asset_id");
  const absent = { code: "asset_not_found", status: 400 };
  await expect(check(["asset_0"], "/source/asset_id")).rejects.toMatchObject({
    kind: absent,
    detail: { field: "/source/asset_id" },
  });
  await expect(check(["asset_\0"], "/a")).rejects.toMatchObject({ kind: absent });
  const inputs = check([asset.id, "asset_0"], (i) => `/inputs/${i}/asset_id`);
  await expect(inputs).rejects.toMatchObject({ kind: absent, detail: { field: "/inputs/1/asset_id" } });
  await expect(f.pin(actor, [asset.id, "asset_0"], "wl_2")).rejects.toMatchObject({ kind: absent });
  await f.db.sql("update data.asset set state = 'importing' where id = $1", [asset.id]);
  await expect(check([asset.id], "/a")).rejects.toMatchObject({ kind: { code: "asset_not_ready", status: 409 } });
  await expect(f.remove(actor, asset.id)).rejects.toMatchObject({ kind: { code: "asset_in_use" } });
});

test("an asset of a region is refused where the work's data may not be, before it is kept", async () => {
  const actor = f.team();
  const asset = await f.upload(actor, "data.csv", "a\n");
  const { tenantId } = actor;
  const ask = { tenantId, assetIds: [asset.id], field: "/a", now: f.clock.now(), holderId: "wl_region" };
  const check = (regions: string[]) => assetPins.check(f.db, { ...ask, regions });
  await check(["us-east"]);
  await f.db.sql("update data.asset set region = 'eu-west' where id = $1", [asset.id]);
  await check([]);
  await check(["us-east", "eu-west"]);
  const refused = { kind: { code: "asset_region", status: 400 }, detail: { field: "/a" } };
  await expect(check(["us-east"])).rejects.toMatchObject(refused);
  await expect(f.db.command((tx) => assetPins.pin(tx, { ...ask, regions: ["us-east"] }))).rejects.toMatchObject(
    refused,
  );
  expect(await f.remove(actor, asset.id)).toMatchObject({ state: "deleted" });
});

test("another team sees, pins and deletes nothing", async () => {
  const [owner, stranger] = [f.team(), f.team()];
  const asset = await f.upload(owner, "a", "x");
  expect(await f.get(stranger, asset.id)).toBeNull();
  expect(await listAssets(f.db, stranger.tenantId, null, 10)).toEqual([]);
  await expect(f.remove(stranger, asset.id)).rejects.toMatchObject({ kind: { code: "not_found" } });
  await expect(f.pin(stranger, [asset.id], "wl_3")).rejects.toMatchObject({ kind: { code: "asset_not_found" } });
});

test("a deletion and a use at the same time never both succeed", async () => {
  const actor = f.team();
  for (let round = 0; round < 12; round++) {
    const asset = await f.upload(actor, "a", `round ${round}`);
    const [deleted, pinned] = await Promise.allSettled([
      f.remove(actor, asset.id),
      f.pin(actor, [asset.id], `wl_race_${round}`),
    ]);
    expect([deleted.status, pinned.status].sort()).toEqual(["fulfilled", "rejected"]);
  }
});

test("bytes go when the last asset that has them is deleted, and not before", async () => {
  const [one, two] = [f.team(), f.team()];
  const a = await f.upload(one, "a", "shared bytes");
  const b = await f.upload(two, "b", "shared bytes");
  expect(b.sha256).toBe(a.sha256);
  await f.remove(one, a.id);
  await f.collect();
  expect(await f.objects.has(a.sha256!)).toBe(true);
  await f.remove(two, b.id);
  expect(await f.objects.has(a.sha256!)).toBe(false);
  expect(await f.collect()).toBe(0);
});

test("an upload of bytes that are just being removed waits until they are gone, and keeps its own", async () => {
  const actor = f.team();
  const asset = await f.upload(actor, "a", "contested");
  const removing = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const slow = f.storeThat({
    remove: async (sha256) => {
      removing.resolve();
      await goOn.promise;
      await f.objects.remove(sha256);
    },
  });
  const deleting = f.remove(actor, asset.id, slow);
  await removing.promise;
  let waited = 0;
  const again = await f.uploadBy(
    f.clockThat(async (ms) => {
      waited++;
      goOn.resolve();
      await deleting;
      await f.clock.advance(ms);
    }),
    actor,
    "contested",
  );
  expect(waited).toBeGreaterThan(0);
  expect(await deleting).toMatchObject({ state: "deleted" });
  expect((await f.read(again.sha256!)).toString()).toBe("contested");
});

test("a removal whose process died keeps an upload of the same bytes waiting for its lease only", async () => {
  const actor = f.team();
  const asset = await f.upload(actor, "a", "left half removed");
  const dying = f.storeThat({ remove: () => Promise.reject(new Error("died")) });
  await expect(f.remove(actor, asset.id, dying)).rejects.toThrow();
  const mark = () =>
    f.db.sql("update data.asset_object set removing_since = $2 where sha256 = $1", [asset.sha256, f.clock.now()]);
  await mark();
  const diedAtMs = f.clock.monotonicMs();
  const again = await f.uploadBy(
    f.clockThat((ms) => f.clock.advance(ms * 20)),
    actor,
    "left half removed",
  );
  expect(f.clock.monotonicMs() - diedAtMs).toBeGreaterThanOrEqual(LIMITS.removalLeaseMs);
  await f.collect();
  expect((await f.read(again.sha256!)).toString()).toBe("left half removed");

  const endless = f.clockThat(async (ms) => {
    await f.clock.advance(ms * 20);
    await mark(); // one removal after the other takes them up, and none ends
  });
  await mark();
  await expect(f.uploadBy(endless, f.team(), "left half removed")).rejects.toMatchObject({
    kind: { code: "asset_commit_failed", status: 500 },
  });
});

test("a store that refuses leaves the asset deleting, out of use and counted, until the deletion is repeated", async () => {
  const actor = f.team();
  const asset = await f.upload(actor, "a", "refused");
  const broken = f.storeThat({ remove: () => Promise.reject(new Error("the disk is read-only")) });
  for (const attempt of ["the first", "the second"])
    await expect(f.remove(actor, asset.id, broken), attempt).rejects.toMatchObject({
      kind: { code: "object_store_unavailable", status: 502 },
    });
  expect(await f.get(actor, asset.id)).toMatchObject({ state: "deleting", storedBytes: 7, deletedAt: null });
  expect((await listAssets(f.db, actor.tenantId, null, 10)).map((a) => a.state)).toEqual(["deleting"]);
  await expect(f.pin(actor, [asset.id], "wl_4")).rejects.toMatchObject({ kind: { code: "asset_not_found" } });
  expect(await f.remove(actor, asset.id)).toMatchObject({ state: "deleted", storedBytes: 0 });
  expect(await f.objects.has(asset.sha256!)).toBe(false);
});

test("a deletion that a crash left in the middle is finished by the sweep", async () => {
  const actor = f.team();
  const asset = await f.upload(actor, "a", "left behind");
  await f.db.sql("update data.asset set state = 'deleting' where id = $1", [asset.id]);
  await f.collect();
  expect(await f.get(actor, asset.id)).toMatchObject({ state: "deleted", storedBytes: 0, deletedAt: f.clock.now() });
  expect(await f.objects.has(asset.sha256!)).toBe(false);
});

test("an upload of content that another team is deleting keeps it", async () => {
  const [one, two] = [f.team(), f.team()];
  const asset = await f.upload(one, "a", "wanted by two");
  const broken = f.storeThat({ remove: () => Promise.reject(new Error("the disk is read-only")) });
  await expect(f.remove(one, asset.id, broken)).rejects.toThrow();
  const kept = await f.upload(two, "b", "wanted by two");
  await f.collect();
  expect(await f.get(one, asset.id)).toMatchObject({ state: "deleted" });
  expect((await f.read(kept.sha256!)).toString()).toBe("wanted by two");
});

test("under uploads, deletions and collections at once every asset keeps its bytes", async () => {
  const actor = f.team();
  const limits = { importsAtOnce: 1_000 };
  const patient = f.clockThat(async (ms) => {
    await new Promise((resolve) => setTimeout(resolve, 5)); // the others do something
    await f.clock.advance(ms);
  });
  const worker = async (seed: number) => {
    for (let i = 0; i < 8; i++) {
      const asset = await f.uploadBy(patient, actor, `content ${(seed + i) % 3}`, limits);
      if ((seed + i) % 2 === 0) await f.remove(actor, asset.id);
      if (i % 3 === seed % 3) await f.collect();
    }
  };
  await Promise.all([0, 1, 2, 3].map(worker));
  const left = await listAssets(f.db, actor.tenantId, null, 100);
  expect(left.length).toBeGreaterThan(0);
  for (const asset of left) expect((await f.read(asset.sha256!)).toString()).toMatch(/^content [012]$/);
});
