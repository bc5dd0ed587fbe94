import { randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openDiskStore } from "../../../infra/objects/disk-store.ts";
import { entriesIn, inPieces, tarOf, zipOf } from "../../../tests/support/archive-samples.ts";
import { type AssetFixture, assetFixture } from "../../../tests/support/asset-fixture.ts";
import { ASSET_LIMITS } from "./asset-limits.ts";
import { storeUpload } from "./store-upload.ts";

let f: AssetFixture;
beforeAll(async () => {
  f = await assetFixture();
});
afterAll(() => f?.close());

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
  const actor = f.team();
  const content = randomBytes(300_000);
  const asset = await f.upload(actor, "weights.bin", content);
  expect(asset).toMatchObject({ kind: "upload", name: "weights.bin", state: "ready", format: "file" });
  expect(asset).toMatchObject({
    storedBytes: 300_000,
    importedBytes: 300_000,
    readyAt: f.clock.now(),
    deletedAt: null,
  });
  expect((await f.read(asset.sha256!)).equals(content)).toBe(true);
  expect(await f.get(actor, asset.id)).toEqual(asset);
  expect(await f.use(actor)).toEqual({ storedBytes: 300_000, stagedBytes: 0 });
});

test("a zip and a tar of one tree are stored as the same tar, once", async () => {
  const actor = f.team();
  const tree = [
    { path: "src/main.py", content: "print(1)" },
    { path: "run.sh", content: "#!/bin/sh", executable: true },
  ];
  const zip = await f.upload(actor, "Code.ZIP", await zipOf(tree));
  const tar = await f.upload(actor, "code.tar", await tarOf(tree));
  expect([zip.format, tar.format]).toEqual(["tar", "tar"]);
  expect(tar.sha256).toBe(zip.sha256);
  expect((await entriesIn(await f.read(zip.sha256!))).map((e) => e.path)).toEqual(["src/main.py", "run.sh"]);
  expect(await readdir(f.scratchDir)).toEqual([]);
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
  const actor = f.team();
  const body = name === "big.tar.gz" ? gzipSync(await tarOf([{ path: "a", content: Buffer.alloc(50_000) }])) : content;
  const limits = { importBytes: 2_000, archive: { ...ASSET_LIMITS.archive, bytes: 40_000 } };
  await expect(f.upload(actor, name, body, limits)).rejects.toMatchObject({ kind: { code, status: 400 } });
  await f.expectNothing(actor);
});

test.for(["data.csv", "code.tar", "code.tar.gz", "code.zip"])(
  "a broken upload of %s leaves nothing staged",
  async (name) => {
    const actor = f.team();
    const broken = (async function* () {
      yield randomBytes(1000);
      throw new Error("aborted");
    })();
    const error = await storeUpload(f.deps(), actor, { name, stream: broken }).catch((e) => e);
    expect(["invalid_import", "invalid_archive"]).toContain(error.kind.code);
    await f.expectNothing(actor);
  },
);

test("a store that cannot take the bytes is told apart from a bad upload, and keeps its cause for the log", async () => {
  const actor = f.team();
  const gone = await openDiskStore(path.join(f.folder, "gone"));
  await rm(path.join(f.folder, "gone"), { recursive: true });
  const error = await storeUpload(f.deps({}, gone), actor, { name: "a", stream: inPieces(Buffer.from("x")) }).catch(
    (e) => e,
  );
  expect(error).toMatchObject({ kind: { code: "object_store_unavailable", status: 502 }, cause: { code: "ENOENT" } });
  await f.expectNothing(actor);
});

test("a team's storage is never overdrawn, however many uploads end at once", async () => {
  const actor = f.team();
  const limits = { quotaBytes: 1_000, importsAtOnce: 10 };
  const results = await Promise.allSettled(
    Array.from({ length: 6 }, () => f.upload(actor, "a", randomBytes(300), limits)),
  );
  const refused = results.filter((r) => r.status === "rejected").map((r) => r.reason.kind.code);
  expect(new Set(refused)).toEqual(new Set(["storage_quota_exceeded"]));
  expect((await f.use(actor)).storedBytes).toBeLessThanOrEqual(1_000);
  expect((await f.use(actor)).storedBytes).toBe((results.length - refused.length) * 300);
  const rest = 1_000 - (await f.use(actor)).storedBytes;
  if (rest > 0) await f.upload(actor, "fits", randomBytes(rest), limits);
  await expect(f.upload(actor, "full", "", limits)).rejects.toMatchObject({
    kind: { code: "storage_quota_exceeded", status: 409 },
    detail: { extra: { storage_quota_bytes: 1_000, stored_bytes: 1_000 } },
  });
});

test("a third upload at once is refused, until one is done or silent for two minutes", async () => {
  const actor = f.team();
  const slow = [held("one"), held("two")];
  const running = slow.map((s, i) => storeUpload(f.deps(), actor, { name: `slow-${i}`, stream: s.stream }));
  await Promise.all(slow.map((s) => s.started));
  await expect(f.upload(actor, "third", "x")).rejects.toMatchObject({
    kind: { code: "imports_in_progress", status: 409 },
  });
  await f.upload(f.team(), "of another team", "x");
  await f.clock.advance(120_000);
  await f.upload(actor, "third", "x");
  for (const s of slow) s.finish();
  expect((await Promise.all(running)).map((a) => a.state)).toEqual(["ready", "ready"]);
});

test("bytes that went between their storing and their use are noticed", async () => {
  const actor = f.team();
  const forgetful = f.storeThat({
    put: async (source, limits) => {
      const stored = await f.objects.put(source, limits);
      await f.objects.remove(stored.sha256);
      return stored;
    },
  });
  const lost = storeUpload(f.deps({}, forgetful), actor, { name: "a", stream: inPieces(Buffer.from("lost")) });
  await expect(lost).rejects.toMatchObject({ kind: { code: "asset_commit_failed" } });
  await f.expectNothing(actor);
});
