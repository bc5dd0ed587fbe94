import { readdir } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PrivateExceptions } from "../../infra/net/public-address.ts";
import { AccountEvent } from "../../subgraphs/data/account-event/account-event.entity.ts";
import { AssetImport, AssetUpload } from "../../subgraphs/data/asset/asset.entity.ts";
import { connectGithub } from "../../subgraphs/data/github-account/github-account.commands.ts";
import { entriesIn, type Sample, tarOf, zipOf } from "../../tests/support/archive-samples.ts";
import { HUB_FILES, type ImportFixture, importFixture } from "../../tests/support/import-fixture.ts";
import { answer, GITHUB_COMMIT, HUB_COMMIT, redirect } from "../../tests/support/source-server.ts";
import { until } from "../../tests/support/until.ts";

let f: ImportFixture;
beforeAll(async () => {
  f = await importFixture();
}, 60_000);
afterAll(() => f?.close());

const pathsOf = async (sha256: string) => (await entriesIn(await f.read(sha256))).map((e) => e.path);

/** Nothing of an import is left but its asset. */
async function expectOver(tenantId: string): Promise<void> {
  expect(await f.db.rows(AssetImport, "where t.tenant_id = $1", [tenantId])).toEqual([]);
  expect(await f.db.rows(AssetUpload, "where t.tenant_id = $1", [tenantId])).toEqual([]);
  expect(await readdir(f.scratchDir)).toEqual([]);
}

test("a repository becomes a checked tar of one commit, without its top folder", async () => {
  const actor = f.team();
  const asset = await f.import(actor, { kind: "github", repo: "https://github.com/team/code.git" });
  expect(asset).toMatchObject({ kind: "github", name: "code", state: "ready", revision: GITHUB_COMMIT, format: "tar" });
  expect(await pathsOf(asset.sha256!)).toEqual(["main.py", "lib/run.sh"]);
  expect(asset.importedBytes).toBeGreaterThan(0);
  await expectOver(actor.tenantId);
  const events = await f.db.rows(AccountEvent, "where t.tenant_id = $1 order by t.seq", [actor.tenantId]);
  expect(events.map((e) => e.type)).toEqual(["asset.importing", "asset.ready"]);
  expect(events[1]!.payload).toMatchObject({
    asset_id: asset.id,
    sha256: asset.sha256,
    stored_bytes: asset.storedBytes,
  });
});

test("a token goes to the service alone, and is neither stored nor logged", async () => {
  const actor = f.team();
  const token = "ghp_Th1sIsTheT0ken";
  for (const server of Object.values(f.servers)) server.seen.length = 0;
  expect(await f.import(actor, { kind: "github", repo: "team/code", token })).toMatchObject({ state: "ready" });
  expect(await f.import(actor, { kind: "huggingface", repo: "team/set", token })).toMatchObject({ state: "ready" });
  for (const { authorization } of [...f.servers.github.seen, ...f.servers.hub.seen])
    expect(authorization).toBe(`Bearer ${token}`);
  for (const { authorization } of [...f.servers.codeload.seen, ...f.servers.cdn.seen])
    expect(authorization).toBeUndefined();
  expect(f.servers.codeload.seen.length).toBeGreaterThan(0);
  expect(f.servers.cdn.seen.length).toBeGreaterThan(0);
  expect(JSON.stringify(f.logged)).not.toContain(token);
  const tables = await f.db.sql<{ name: string }>(
    "select table_schema || '.' || table_name as name from information_schema.tables where table_schema in ('data', 'infra')",
  );
  for (const { name } of tables) {
    const rows = await f.db.sql(`select t::text as row from ${name} t`);
    expect(JSON.stringify(rows), name).not.toContain(token);
  }
});

test("without a token the team's connected account is used, and nobody else's", async () => {
  const owner = f.admin("team_connected");
  f.servers.github.routes.set("/user", answer(JSON.stringify({ login: "octo" })));
  const { fetch, origins } = f.deps();
  const deps = { db: f.db, box: f.box, fetch, apiUrl: origins.github };
  expect(await connectGithub(deps, owner, "ghp_account", f.clock.now())).toMatchObject({ login: "octo" });
  f.servers.github.seen.length = 0;
  await f.import(owner, { kind: "github", repo: "team/code" });
  expect(new Set(f.servers.github.seen.map((s) => s.authorization))).toEqual(new Set(["Bearer ghp_account"]));
  f.servers.github.seen.length = 0;
  await f.import(f.team(), { kind: "github", repo: "team/code" });
  expect(new Set(f.servers.github.seen.map((s) => s.authorization))).toEqual(new Set([undefined]));
});

test("the data files of a dataset are taken at one commit; patterns choose others", async () => {
  const actor = f.team();
  const asset = await f.import(actor, { kind: "huggingface", repo: "team/set" });
  expect(asset).toMatchObject({ state: "ready", name: "set", revision: HUB_COMMIT, format: "tar" });
  expect(await pathsOf(asset.sha256!)).toEqual(["data/train.csv", "data/big.jsonl", "img/cat.PNG"]);
  const [first] = await entriesIn(await f.read(asset.sha256!));
  expect(first!.content.toString()).toBe(HUB_FILES["data/train.csv"]);
  const chosen = await f.import(actor, { kind: "huggingface", repo: "team/set", files: ["*.md", "data/t*"] });
  expect(await pathsOf(chosen.sha256!)).toEqual(["data/train.csv", "README.md"]);
  const none = await f.import(actor, { kind: "huggingface", repo: "team/set", files: ["*.mp4"] });
  expect(none).toMatchObject({ state: "failed", error: "source_unavailable" });
  await expectOver(actor.tenantId);
});

test("a file of a dataset that is not what the listing says is refused", async () => {
  const place = `/datasets/team/set/resolve/${HUB_COMMIT}/data/train.csv`;
  const honest = f.servers.hub.routes.get(place)!;
  for (const lie of ["a,b\n1,3\n", "a,b\n", `${HUB_FILES["data/train.csv"]}3,4\n`]) {
    f.servers.hub.routes.set(place, answer(lie));
    const asset = await f.import(f.team(), { kind: "huggingface", repo: "team/set" });
    expect(asset).toMatchObject({ state: "failed", error: "checksum_mismatch", storedBytes: 0 });
  }
  f.servers.hub.routes.set(place, honest);
});

test("a file behind an address is kept as it is, and an archive unpacked, by its name", async () => {
  const { web } = f.servers;
  web.routes.set("/a%20file.csv", answer("1,2\n"));
  web.routes.set("/code.zip", redirect("/elsewhere"));
  web.routes.set("/elsewhere", answer(await zipOf([{ path: "x/y", content: "z" }])));
  const actor = f.team();
  const file = await f.import(actor, { kind: "url", url: `${web.origin}/a%20file.csv?sig=s3cret#part` });
  expect(file).toMatchObject({ state: "ready", name: "a file.csv", format: "file", revision: null, storedBytes: 4 });
  const zip = await f.import(actor, { kind: "url", url: `${web.origin}/code.zip` });
  expect(zip).toMatchObject({ name: "code.zip", format: "tar" });
  expect(await pathsOf(zip.sha256!)).toEqual(["x/y"]);
  await expectOver(actor.tenantId);
  const [row] = await f.db.sql<{ found: bigint }>(
    "select count(*) as found from data.asset t where t::text like '%s3cret%'",
  );
  expect(row!.found).toBe(0n);
});

const big = Buffer.alloc(60_000);
const links: Sample[] = [
  { path: "a", type: "symlink" },
  { path: "a", type: "link" },
  { path: "a", type: "character-device" },
  { path: "../a" },
  { path: "/etc/a" },
];
test.for<[string, string, () => Promise<Uint8Array>]>([
  ["source_unavailable", "gone.csv", async () => Buffer.alloc(0)],
  ["asset_too_large", "big.csv", async () => big],
  ["archive_bomb", "bomb.zip", () => zipOf([{ path: "zeros", content: Buffer.alloc(30_000) }])],
  [
    "archive_bomb",
    "bomb.tar.gz",
    async () => gzipSync(await tarOf([{ path: "zeros", content: Buffer.alloc(30_000) }])),
  ],
  ["invalid_archive", "cut.tar.gz", async () => gzipSync(await tarOf([{ path: "a", content: "b" }])).subarray(0, 40)],
  ["invalid_archive", "junk.zip", async () => Buffer.from("not a zip at all")],
  ["unsafe_archive", "twice.tar", () => tarOf([{ path: "a" }, { path: "./a" }])],
  ["too_many_files", "many.tar", () => tarOf(Array.from({ length: 9 }, (_, i) => ({ path: `f${i}` })))],
  ...links.map((sample): [string, string, () => Promise<Uint8Array>] => [
    "unsafe_archive",
    `${sample.type ?? "path"}.tar`,
    () => tarOf([sample]),
  ]),
])("what ends as %s (%s) leaves a failed asset and nothing else", async ([error, name, make]) => {
  const { web } = f.servers;
  const bytes = await make();
  if (bytes.length === 0) web.routes.delete(`/${name}`);
  else web.routes.set(`/${name}`, answer(bytes));
  const actor = f.team();
  const { limits } = f.deps();
  const archive = { ...limits.archive, files: 8, ratioFloorBytes: 10_000, ratio: 5 };
  const over = { limits: { ...limits, importBytes: 50_000, archive } };
  const asset = await f.import(actor, { kind: "url", url: `${web.origin}/${name}` }, over);
  expect(asset).toMatchObject({ state: "failed", error, storedBytes: 0, sha256: null });
  expect(asset.errorMessage).toMatch(/\.$/);
  await expectOver(actor.tenantId);
  const events = await f.db.rows(AccountEvent, "where t.tenant_id = $1 order by t.seq", [actor.tenantId]);
  expect(events.at(-1)).toMatchObject({ type: "asset.failed", payload: { error } });
});

test.for<[string, number, string]>([
  ["401", 401, "source_unauthorized"],
  ["403", 403, "source_unauthorized"],
  ["429", 429, "source_unavailable"],
  ["500", 500, "source_unavailable"],
])("a source that answers %s is told apart", async ([, status, error]) => {
  f.servers.web.routes.set("/status", answer("", {}, status));
  const asset = await f.import(f.team(), { kind: "url", url: `${f.servers.web.origin}/status` });
  expect(asset).toMatchObject({ state: "failed", error });
});

test("a source in the private network is refused, also behind a redirect or a name", async () => {
  const { web } = f.servers;
  web.routes.set("/metadata", redirect("https://169.254.169.254/latest/meta-data"));
  const behind = await f.import(f.team(), { kind: "url", url: `${web.origin}/metadata` });
  expect(behind).toMatchObject({ state: "failed", error: "source_private_address" });
  const fetch = f.internet.fetch({ exceptions: new PrivateExceptions([]) });
  const named = await f.import(f.team(), { kind: "url", url: `${web.origin}/file` }, { fetch });
  expect(named).toMatchObject({ state: "failed", error: "source_private_address" });
});

test("a source that stalls is given up, and one that breaks off leaves nothing", async () => {
  const { web } = f.servers;
  web.routes.set("/stalls", (_, response) => void response.writeHead(200).write("a beginning"));
  web.routes.set("/breaks", (_, response) => {
    response.writeHead(200, { "content-length": "100" }).write("a beginning");
    setTimeout(() => response.destroy(), 30);
  });
  const fetch = f.internet.fetch({ idleMs: 1_000 });
  const [stalled, broken] = [f.team(), f.team()];
  expect(await f.import(stalled, { kind: "url", url: `${web.origin}/stalls` }, { fetch })).toMatchObject({
    state: "failed",
    error: "source_timeout",
  });
  expect(await f.import(broken, { kind: "url", url: `${web.origin}/breaks` }, { fetch })).toMatchObject({
    state: "failed",
    error: "source_unavailable",
  });
  await f.expectOnlyFailed(stalled);
  await f.expectOnlyFailed(broken);
});

test("a store that refuses the bytes is to blame itself", async () => {
  f.servers.web.routes.set("/fine", answer("fine"));
  const objects = f.storeThat({
    put: async (source) => {
      for await (const _ of source) throw new Error("the bucket is gone");
      throw new Error("the bucket is gone");
    },
  });
  const asset = await f.import(f.team(), { kind: "url", url: `${f.servers.web.origin}/fine` }, { objects });
  expect(asset).toMatchObject({ state: "failed", error: "object_store_unavailable" });
});

test("an import's progress is written down while it runs, and its time ends after ten minutes", async () => {
  const actor = f.team();
  const { web } = f.servers;
  let trickle: NodeJS.Timeout | undefined;
  web.routes.set("/slow", (_, response) => {
    response.writeHead(200);
    trickle = setInterval(() => response.write("drop"), 20);
    response.on("close", () => clearInterval(trickle));
  });
  const { asset } = await f.admit(actor, { kind: "url", url: `${web.origin}/slow` });
  const running = f.run(asset.id);
  await until("bytes are written down", async () => {
    await f.clock.advance(2_000);
    return (await f.get(actor, asset.id)).importedBytes > 0;
  });
  expect((await f.use(actor)).stagedBytes).toBeGreaterThan(0);
  await expect(f.remove(actor, asset.id)).rejects.toMatchObject({ kind: { code: "asset_in_use" } });
  let over = false;
  void running.finally(() => {
    over = true;
  });
  await until("the import is over", async () => {
    await f.clock.advance(30_000);
    return over;
  });
  expect(await f.get(actor, asset.id)).toMatchObject({ state: "failed", error: "source_timeout" });
  await expectOver(actor.tenantId);
});

test("two imports of a team run at once and no third; its storage is never overdrawn", async () => {
  const actor = f.team();
  f.servers.web.routes.set("/fine", answer("fine"));
  const url = `${f.servers.web.origin}/fine`;
  const first = await f.admit(actor, { kind: "url", url });
  await f.admit(actor, { kind: "url", url });
  await expect(f.admit(actor, { kind: "url", url })).rejects.toMatchObject({ kind: { code: "imports_in_progress" } });
  await expect(f.upload(actor, "x", "y")).rejects.toMatchObject({ kind: { code: "imports_in_progress" } });
  const limits = { ...f.deps().limits, quotaBytes: 3 };
  await f.run(first.asset.id, { limits });
  expect(await f.get(actor, first.asset.id)).toMatchObject({ state: "failed", error: "storage_quota_exceeded" });
});
