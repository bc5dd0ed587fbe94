import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect } from "vitest";
import type { Actor } from "../../infra/kernel/actor.ts";
import { type Clock, FakeClock } from "../../infra/kernel/clock.ts";
import { openDiskStore } from "../../infra/objects/disk-store.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import { assetsById, listAssets } from "../../subgraphs/data/asset/asset.commands.ts";
import { AssetUpload } from "../../subgraphs/data/asset/asset.entity.ts";
import { ASSET_LIMITS, type AssetLimits } from "../../subgraphs/data/asset/asset-limits.ts";
import { assetPins } from "../../subgraphs/data/asset/asset-pins.ts";
import { storageUse } from "../../subgraphs/data/asset/asset-space.ts";
import { collectAssetBytes } from "../../subgraphs/data/asset/collect-asset-bytes.ts";
import { deleteAsset } from "../../subgraphs/data/asset/delete-asset.ts";
import { storeUpload, type UploadDeps } from "../../subgraphs/data/asset/store-upload.ts";
import { dataEntities } from "../../subgraphs/data/entities.ts";
import { newTeams } from "./actors.ts";
import { all, inPieces } from "./archive-samples.ts";
import { testDatabase } from "./database.ts";

/** A real database, a real store on disk and a clock that stands still, for tests of assets. */
export async function assetFixture() {
  const clock = new FakeClock("2026-03-01T12:00:00Z");
  const folder = await mkdtemp(path.join(tmpdir(), "nodus-assets-"));
  const scratchDir = path.join(folder, "scratch");
  await mkdir(scratchDir);
  const objects = await openDiskStore(path.join(folder, "store"));
  const database = await testDatabase(dataEntities);
  const { db } = database;

  const deps = (limits: Partial<AssetLimits> = {}, store: ObjectStore = objects): UploadDeps => ({
    db,
    objects: store,
    clock,
    limits: { ...ASSET_LIMITS, ...limits },
    scratchDir,
  });
  const use = (actor: Actor) => storageUse(db, actor.tenantId, clock.now());
  return {
    db,
    clock,
    folder,
    scratchDir,
    objects,
    deps,
    use,
    /** A team that no other test knows. */
    team: newTeams(),
    upload: (actor: Actor, name: string, content: string | Uint8Array, limits?: Partial<AssetLimits>) =>
      storeUpload(deps(limits), actor, { name, stream: inPieces(Buffer.from(content)) }),
    /** An upload that sees another clock than the others. */
    uploadBy: (by: Clock, actor: Actor, content: string, limits?: Partial<AssetLimits>) =>
      storeUpload({ ...deps(limits), clock: by }, actor, { name: "a", stream: inPieces(Buffer.from(content)) }),
    /** The fixture's clock, but for what a sleep does. */
    clockThat: (sleep: Clock["sleep"]): Clock => ({
      now: () => clock.now(),
      monotonicMs: () => clock.monotonicMs(),
      sleep,
    }),
    read: async (sha256: string) => all((await objects.open(sha256))!.stream as AsyncIterable<Uint8Array>),
    get: async (actor: Actor, id: string) => (await assetsById(db, actor.tenantId, [id], clock.now()))[0]!,
    remove: (actor: Actor, id: string, store: ObjectStore = objects) =>
      deleteAsset({ db, objects: store, clock }, actor, id),
    pin: (actor: Actor, assetIds: string[], holderId: string) =>
      db.command((tx) => assetPins.pin(tx, { tenantId: actor.tenantId, assetIds, holderId, now: clock.now() })),
    collect: (store: ObjectStore = objects) => collectAssetBytes({ db, objects: store, clock }),
    /** The real store, but for a moment's delay or loss put in its way. */
    storeThat: (differs: Partial<ObjectStore>): ObjectStore => ({
      put: (source, limits) => objects.put(source, limits),
      open: (sha256, range) => objects.open(sha256, range),
      has: (sha256) => objects.has(sha256),
      remove: (sha256) => objects.remove(sha256),
      list: (page) => objects.list(page),
      sweepTemp: (olderThanMs) => objects.sweepTemp(olderThanMs),
      ping: () => objects.ping(),
      ...differs,
    }),
    /** Nothing of a team's upload is left: no row, no staged byte, no file on its way. */
    async expectNothing(actor: Actor): Promise<void> {
      expect(await use(actor)).toEqual({ storedBytes: 0, stagedBytes: 0 });
      expect(await listAssets(db, actor.tenantId, null, 10)).toEqual([]);
      expect(await db.rows(AssetUpload, "where t.tenant_id = $1", [actor.tenantId])).toEqual([]);
      expect(await readdir(scratchDir)).toEqual([]);
      expect(await readdir(path.join(folder, "store", "temp"))).toEqual([]);
    },
    /** Of a team's failed imports their records are left, and nothing else. */
    async expectOnlyFailed(actor: Actor): Promise<void> {
      expect(await use(actor)).toEqual({ storedBytes: 0, stagedBytes: 0 });
      for (const asset of await listAssets(db, actor.tenantId, null, 10)) expect(asset.state).toBe("failed");
      expect(await db.rows(AssetUpload, "where t.tenant_id = $1", [actor.tenantId])).toEqual([]);
      expect(await readdir(path.join(folder, "store", "temp"))).toEqual([]);
    },
    async close(): Promise<void> {
      await database.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export type AssetFixture = Awaited<ReturnType<typeof assetFixture>>;
