import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deathAt } from "../../../roles/simulation/death.ts";
import { zipOf } from "../../../tests/support/archive-samples.ts";
import { type AssetFixture, assetFixture } from "../../../tests/support/asset-fixture.ts";
import { AccountEvent } from "../account-event/account-event.entity.ts";
import { listAssets } from "./asset.commands.ts";
import { AssetObject } from "./asset.entity.ts";
import { deleteAsset } from "./delete-asset.ts";
import { storeUpload } from "./store-upload.ts";

let f: AssetFixture;
beforeAll(async () => {
  f = await assetFixture();
});
afterAll(() => f?.close());

/** Lets the work die at its first step, at its second and so on, until it lives to its end. */
async function dyingAtEveryStep(once: (death: ReturnType<typeof deathAt>) => Promise<void>): Promise<number> {
  for (let n = 1; n <= 40; n++) {
    const death = deathAt(n);
    await once(death);
    if (!death.happened) return n;
  }
  throw new Error("more steps than expected: does it end?");
}

test("a deletion that dies at any step is finished by the sweep, once", { timeout: 60_000 }, async () => {
  const steps = await dyingAtEveryStep(async (death) => {
    const actor = f.team();
    const asset = await f.upload(actor, "a", randomBytes(20));
    const deps = { db: death.database(f.db), objects: death.port("objects", f.objects), clock: f.clock };
    await deleteAsset(deps, actor, asset.id).catch((error: unknown) => {
      if (!death.happened) throw error;
    });
    await death.quiet();
    // A removal that died holds the object's row until its lease is over.
    for (const _ of ["the sweep after the death", "the one after the lease"]) {
      await f.collect();
      await f.clock.advance(600_001);
    }
    const left = await f.get(actor, asset.id);
    if (left.state === "ready") return; // it died before the deletion was written down
    expect(left).toMatchObject({ state: "deleted", storedBytes: 0 });
    expect(await f.objects.has(asset.sha256!)).toBe(false);
    expect(await f.db.row(AssetObject, "where t.sha256 = $1", [asset.sha256])).toBeNull();
    const events = await f.db.rows(AccountEvent, "where t.tenant_id = $1 order by t.seq", [actor.tenantId]);
    expect(events.map((e) => e.type)).toEqual(["asset.ready", "asset.deleted"]);
  });
  expect(steps).toBeGreaterThan(5);
});

test("an upload that dies at any step leaves a ready asset or, after the sweep, nothing", {
  timeout: 60_000,
}, async () => {
  const steps = await dyingAtEveryStep(async (death) => {
    const actor = f.team();
    const content = await zipOf([{ path: "a", content: randomBytes(20) }]);
    const deps = { ...f.deps(), db: death.database(f.db), objects: death.port("objects", f.objects) };
    const stream = (async function* () {
      yield content;
    })();
    await storeUpload(deps, actor, { name: "a.zip", stream }).catch((error: unknown) => {
      if (!death.happened) throw error;
    });
    await death.quiet();
    await f.clock.advance(600_001);
    await f.collect();
    const assets = await listAssets(f.db, actor.tenantId, null, 10);
    expect((await f.use(actor)).stagedBytes).toBe(0);
    for (const asset of assets) expect(await f.objects.has(asset.sha256!)).toBe(true);
    const kept = assets.map((asset) => asset.sha256);
    const objects = await f.db.rows(AssetObject, "where true", []);
    for (const { sha256 } of objects) expect(await f.objects.has(sha256)).toBe(true);
    expect(assets.length).toBeLessThanOrEqual(1);
    for (const { id } of assets) await f.remove(actor, id);
    for (const sha256 of kept) expect(await f.objects.has(sha256!)).toBe(false);
  });
  expect(steps).toBeGreaterThan(5);
});
