import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Actor, SCOPES } from "../../../infra/kernel/actor.ts";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { openDiskStore } from "../../../infra/objects/disk-store.ts";
import type { ObjectStore } from "../../../infra/objects/object-store.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { all, entriesIn, inPieces, tarOf, zipOf } from "./archive/archive-samples.ts";
import { assetsById, deleteAsset, listAssets, storageUse } from "./asset.commands.ts";
import { Asset, AssetObject, AssetPin, AssetUpload } from "./asset.entity.ts";
import { ASSET_LIMITS, type AssetLimits } from "./asset-limits.ts";
import { assetPins } from "./asset-pins.ts";
import { collectAssetBytes } from "./collect-asset-bytes.ts";
import { storeUpload, type UploadDeps } from "./store-upload.ts";

let database: TestDatabase;
let folder: string;
let objects: ObjectStore;
const clock = new FakeClock("2026-03-01T12:00:00Z");
const DAY_MS = 86_400_000;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "nodus-assets-"));
  await mkdir(path.join(folder, "scratch"));
  objects = await openDiskStore(path.join(folder, "store"));
  database = await testDatabase([Asset, AssetPin, AssetUpload, AssetObject]);
});
afterAll(async () => {
  await database?.close();
  await rm(folder, { recursive: true, force: true });
});

let teams = 0;
/** A team that no other test knows. */
function team(): Actor {
  const tenantId = `team_${++teams}`;
  return { tenantId, keyId: "key_1", memberId: null, email: "", name: "", role: "team", scopes: SCOPES };
}

const deps = (limits: Partial<AssetLimits> = {}, store = objects): UploadDeps => ({
  db: database.db,
  objects: store,
  clock,
  limits: { ...ASSET_LIMITS, ...limits },
  scratchDir: path.join(folder, "scratch"),
});
const bytes = (text: string | Uint8Array) => inPieces(Buffer.from(text));
const upload = (actor: Actor, name: string, content: string | Uint8Array, limits?: Partial<AssetLimits>) =>
  storeUpload(deps(limits), actor, { name, stream: bytes(content) });
const read = async (sha256: string) => all((await objects.open(sha256))!.stream as AsyncIterable<Uint8Array>);
const use = (actor: Actor) => storageUse(database.db, actor.tenantId, clock.now());
const get = async (actor: Actor, id: string) => (await assetsById(database.db, actor.tenantId, [id], clock.now()))[0]!;
const remove = (actor: Actor, id: string) => deleteAsset(database.db, actor, id, clock.now());
const pin = (actor: Actor, assetIds: string[], holderId: string) =>
  database.db.command((tx) => assetPins.pin(tx, { tenantId: actor.tenantId, assetIds, holderId, now: clock.now() }));
const collect = (store = objects) => collectAssetBytes({ db: database.db, objects: store, clock });
/** The real store, but for a moment's delay or loss put in its way. */
function storeThat(differs: Partial<ObjectStore>): ObjectStore {
  return {
    put: (source, limits) => objects.put(source, limits),
    open: (sha256, range) => objects.open(sha256, range),
    has: (sha256) => objects.has(sha256),
    remove: (sha256) => objects.remove(sha256),
    sweepTemp: (olderThanMs) => objects.sweepTemp(olderThanMs),
    ping: () => objects.ping(),
    ...differs,
  };
}
/** A stream that stops when told to go on: until then its upload is under way. */
function held(content: string): { stream: AsyncIterable<Uint8Array>; started: Promise<void>; finish(): void } {
  const started = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<void>();
  const stream = (async function* () {
    yield Buffer.from(content);
    started.resolve();
    await finished.promise;
  })();
  return { stream, started: started.promise, finish: () => finished.resolve() };
}

test("a file is kept byte for byte under its name", async () => {
  const actor = team();
  const content = randomBytes(300_000);
  const asset = await upload(actor, "weights.bin", content);
  expect(asset).toMatchObject({ kind: "upload", name: "weights.bin", state: "ready", format: "file" });
  expect(asset).toMatchObject({ storedBytes: 300_000, importedBytes: 300_000, readyAt: clock.now(), deletedAt: null });
  expect((await read(asset.sha256!)).equals(content)).toBe(true);
  expect(await get(actor, asset.id)).toEqual(asset);
  expect(await use(actor)).toEqual({ storedBytes: 300_000, stagedBytes: 0 });
});

test("a zip and a tar of one tree are stored as the same tar, once", async () => {
  const actor = team();
  const tree = [
    { path: "src/main.py", content: "print(1)" },
    { path: "run.sh", content: "#!/bin/sh", executable: true },
  ];
  const zip = await upload(actor, "Code.ZIP", await zipOf(tree));
  const tar = await upload(actor, "code.tar", await tarOf(tree));
  expect([zip.format, tar.format]).toEqual(["tar", "tar"]);
  expect(tar.sha256).toBe(zip.sha256);
  expect((await entriesIn(await read(zip.sha256!))).map((e) => e.path)).toEqual(["src/main.py", "run.sh"]);
  expect(await readdir(path.join(folder, "scratch"))).toEqual([]);
});

test.for<[string, string, string | Buffer, string]>([
  ["a path as its name", "../weights", "x", "invalid_import"],
  ["no name", "", "x", "invalid_import"],
  ["a name with a line break", "a\r\nX-Evil: 1", "x", "invalid_import"],
  ["a kind of archive that is not unpacked", "code.tar.bz2", "x", "unsupported_archive"],
  ["a damaged archive", "code.tar", "not a tar", "invalid_archive"],
  ["a damaged zip", "code.zip", "not a zip", "invalid_archive"],
  ["more bytes than one upload may have", "big", Buffer.alloc(2_001), "asset_too_large"],
  ["more content than one archive may have", "big.tar.gz", "", "asset_too_large"],
])("an upload with %s is refused and leaves nothing", async ([, name, content, code]) => {
  const actor = team();
  const body = name === "big.tar.gz" ? gzipSync(await tarOf([{ path: "a", content: Buffer.alloc(50_000) }])) : content;
  const limits = { importBytes: 2_000, archive: { ...ASSET_LIMITS.archive, bytes: 40_000 } };
  await expect(upload(actor, name, body, limits)).rejects.toMatchObject({ kind: { code, status: 400 } });
  await expectNothing(actor);
});

async function expectNothing(actor: Actor): Promise<void> {
  expect(await use(actor)).toEqual({ storedBytes: 0, stagedBytes: 0 });
  expect(await listAssets(database.db, actor.tenantId, null, 10)).toEqual([]);
  expect(await database.db.rows(AssetUpload, "where t.tenant_id = $1", [actor.tenantId])).toEqual([]);
  expect(await readdir(path.join(folder, "scratch"))).toEqual([]);
  expect(await readdir(path.join(folder, "store", "temp"))).toEqual([]);
}

test.for(["data.csv", "code.tar", "code.tar.gz", "code.zip"])(
  "a broken upload of %s leaves nothing staged",
  async (name) => {
    const actor = team();
    const broken = (async function* () {
      yield randomBytes(1000);
      throw new Error("aborted");
    })();
    const error = await storeUpload(deps(), actor, { name, stream: broken }).catch((e) => e);
    expect(["invalid_import", "invalid_archive"]).toContain(error.kind.code);
    await expectNothing(actor);
  },
);

test("a store that cannot take the bytes is told apart from a bad upload, and keeps its cause for the log", async () => {
  const actor = team();
  const gone = await openDiskStore(path.join(folder, "gone"));
  await rm(path.join(folder, "gone"), { recursive: true });
  const error = await storeUpload(deps({}, gone), actor, { name: "a", stream: bytes("x") }).catch((e) => e);
  expect(error).toMatchObject({ kind: { code: "object_store_unavailable", status: 502 }, cause: { code: "ENOENT" } });
  await expectNothing(actor);
});

test("a team's storage is never overdrawn, however many uploads end at once", async () => {
  const actor = team();
  const limits = { quotaBytes: 1_000, importsAtOnce: 10 };
  const results = await Promise.allSettled(
    Array.from({ length: 6 }, () => upload(actor, "a", randomBytes(300), limits)),
  );
  const refused = results.filter((r) => r.status === "rejected").map((r) => r.reason.kind.code);
  expect(new Set(refused)).toEqual(new Set(["storage_quota_exceeded"]));
  expect((await use(actor)).storedBytes).toBeLessThanOrEqual(1_000);
  expect((await use(actor)).storedBytes).toBe((results.length - refused.length) * 300);
  const rest = 1_000 - (await use(actor)).storedBytes;
  if (rest > 0) await upload(actor, "fits", randomBytes(rest), limits);
  await expect(upload(actor, "full", "", limits)).rejects.toMatchObject({
    kind: { code: "storage_quota_exceeded", status: 409 },
    detail: { extra: { storage_quota_bytes: 1_000, stored_bytes: 1_000 } },
  });
});

test("a third upload at once is refused, until one is done or silent for two minutes", async () => {
  const actor = team();
  const slow = [held("one"), held("two")];
  const running = slow.map((s, i) => storeUpload(deps(), actor, { name: `slow-${i}`, stream: s.stream }));
  await Promise.all(slow.map((s) => s.started));
  await expect(upload(actor, "third", "x")).rejects.toMatchObject({
    kind: { code: "imports_in_progress", status: 409 },
  });
  await upload(team(), "of another team", "x");
  await clock.advance(120_000);
  await upload(actor, "third", "x");
  for (const s of slow) s.finish();
  expect((await Promise.all(running)).map((a) => a.state)).toEqual(["ready", "ready"]);
});

test("an asset that a holder keeps cannot be deleted; then it is deleted once, and read for thirty days", async () => {
  const actor = team();
  const asset = await upload(actor, "data.csv", "a,b\n");
  const pinned = { id: asset.id, name: "data.csv", sha256: asset.sha256, bytes: 4, format: "file" };
  expect(await pin(actor, [asset.id, asset.id], "wl_1")).toEqual([pinned, pinned]);
  expect(await pin(actor, [asset.id], "wl_1")).toEqual([pinned]);
  await expect(remove(actor, asset.id)).rejects.toMatchObject({
    kind: { code: "asset_in_use", status: 409 },
    detail: { extra: { holder_id: "wl_1" } },
  });
  await database.db.command((tx) => assetPins.release(tx, "wl_1", clock.now()));
  expect(await remove(actor, asset.id)).toMatchObject({ state: "deleted", storedBytes: 0, deletedAt: clock.now() });
  await expect(remove(actor, asset.id)).rejects.toMatchObject({ kind: { code: "not_found" } });
  expect(await listAssets(database.db, actor.tenantId, null, 10)).toEqual([]);
  expect(await get(actor, asset.id)).toMatchObject({ state: "deleted" });
  await clock.advance(30 * DAY_MS);
  expect(await get(actor, asset.id)).toBeNull();
  await collect();
  expect(await database.db.row(Asset, "where t.id = $1", [asset.id])).not.toBeNull();
  await clock.advance(1);
  await collect();
  expect(await database.db.row(Asset, "where t.id = $1", [asset.id])).toBeNull();
});

test("references are refused by their place in the body", async () => {
  const actor = team();
  const asset = await upload(actor, "a", "x");
  const check = (assetIds: string[], field: string | ((i: number) => string)) =>
    assetPins.check(database.db, { tenantId: actor.tenantId, assetIds, field });
  await check([asset.id], "/source/asset_id");
  const absent = { code: "asset_not_found", status: 400 };
  await expect(check(["asset_0"], "/source/asset_id")).rejects.toMatchObject({
    kind: absent,
    detail: { field: "/source/asset_id" },
  });
  const inputs = check([asset.id, "asset_0"], (i) => `/inputs/${i}/asset_id`);
  await expect(inputs).rejects.toMatchObject({ kind: absent, detail: { field: "/inputs/1/asset_id" } });
  await expect(pin(actor, [asset.id, "asset_0"], "wl_2")).rejects.toMatchObject({ kind: absent });
  await database.db.sql("update data.asset set state = 'importing' where id = $1", [asset.id]);
  await expect(check([asset.id], "/a")).rejects.toMatchObject({ kind: { code: "asset_not_ready", status: 409 } });
  await expect(remove(actor, asset.id)).rejects.toMatchObject({ kind: { code: "asset_in_use" } });
});

test("another team sees, pins and deletes nothing", async () => {
  const [owner, stranger] = [team(), team()];
  const asset = await upload(owner, "a", "x");
  expect(await get(stranger, asset.id)).toBeNull();
  expect(await listAssets(database.db, stranger.tenantId, null, 10)).toEqual([]);
  await expect(remove(stranger, asset.id)).rejects.toMatchObject({ kind: { code: "not_found" } });
  await expect(pin(stranger, [asset.id], "wl_3")).rejects.toMatchObject({ kind: { code: "asset_not_found" } });
});

test("a deletion and a use at the same time never both succeed", async () => {
  const actor = team();
  for (let round = 0; round < 12; round++) {
    const asset = await upload(actor, "a", `round ${round}`);
    const [deleted, pinned] = await Promise.allSettled([
      remove(actor, asset.id),
      pin(actor, [asset.id], `wl_race_${round}`),
    ]);
    expect([deleted.status, pinned.status].sort()).toEqual(["fulfilled", "rejected"]);
  }
});

test("bytes go when the last asset that has them is deleted, and not before", async () => {
  const [one, two] = [team(), team()];
  const a = await upload(one, "a", "shared bytes");
  const b = await upload(two, "b", "shared bytes");
  expect(b.sha256).toBe(a.sha256);
  await remove(one, a.id);
  await collect();
  expect(await objects.has(a.sha256!)).toBe(true);
  await remove(two, b.id);
  expect(await collect()).toBeGreaterThanOrEqual(1);
  expect(await objects.has(a.sha256!)).toBe(false);
  expect(await collect()).toBe(0);
});

test("bytes that are being removed are not used again, and an upload of them works after", async () => {
  const actor = team();
  const asset = await upload(actor, "a", "contested");
  await remove(actor, asset.id);
  const removing = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const slow = storeThat({
    remove: async (sha256) => {
      removing.resolve();
      await goOn.promise;
      await objects.remove(sha256);
    },
  });
  const collecting = collect(slow);
  await removing.promise;
  await expect(upload(actor, "again", "contested")).rejects.toMatchObject({
    kind: { code: "asset_commit_failed", status: 500 },
  });
  goOn.resolve();
  await collecting;
  const again = await upload(actor, "again", "contested");
  expect((await read(again.sha256!)).toString()).toBe("contested");
});

test("bytes that went between their storing and their use are noticed", async () => {
  const actor = team();
  const forgetful = storeThat({
    put: async (source, limits) => {
      const stored = await objects.put(source, limits);
      await objects.remove(stored.sha256);
      return stored;
    },
  });
  const lost = storeUpload(deps({}, forgetful), actor, { name: "a", stream: bytes("lost") });
  await expect(lost).rejects.toMatchObject({ kind: { code: "asset_commit_failed" } });
  await expectNothing(actor);
});

test("under uploads, deletions and collections at once every asset keeps its bytes", async () => {
  const actor = team();
  const limits = { importsAtOnce: 1_000 };
  const worker = async (seed: number) => {
    for (let i = 0; i < 8; i++) {
      const asset = await upload(actor, "a", `content ${(seed + i) % 3}`, limits).catch((error) => {
        if (error.kind?.code === "asset_commit_failed") return null; // removed just then: the sender tries again
        throw error;
      });
      if (asset && (seed + i) % 2 === 0) await remove(actor, asset.id);
      if (i % 3 === seed % 3) await collect();
    }
  };
  await Promise.all([0, 1, 2, 3].map(worker));
  const left = await listAssets(database.db, actor.tenantId, null, 100);
  expect(left.length).toBeGreaterThan(0);
  for (const asset of left) expect((await read(asset.sha256!)).toString()).toMatch(/^content [012]$/);
});
