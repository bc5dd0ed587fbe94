import { writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { tarOf } from "../support/archive-samples.ts";
import { Platform } from "../support/platform.ts";
import { newDataFolder } from "../support/platform-place.ts";
import { answer, playGithub, type SourceServer, type Sources, sources } from "../support/source-server.ts";
import { until } from "../support/until.ts";
import { settles, submit } from "../support/workloads.ts";

let world: Sources;
let web: SourceServer;
let github: SourceServer;
let platform: Platform;

beforeAll(async () => {
  world = await sources();
  const codeload = await world.serve();
  [github, web] = [await world.serve(), await world.serve()];
  const repository = await tarOf([
    { path: "top/", type: "directory" },
    { path: "top/say.sh", content: "echo imported" },
  ]);
  playGithub(github, codeload, "team/code", gzipSync(repository));
  const dataDir = newDataFolder();
  const caFile = path.join(dataDir, "sources-ca.pem");
  writeFileSync(caFile, world.authority.caPem, { mode: 0o644 });
  const settings = {
    NODE_EXTRA_CA_CERTS: caFile,
    NODUS_ALLOW_PRIVATE_HOSTS: "localhost",
    NODUS_GITHUB_API_URL: github.origin,
    NODUS_HUGGING_FACE_URL: web.origin,
  };
  platform = await Platform.start(settings, { dataDir });
}, 120_000);
afterAll(async () => {
  await platform?.dispose();
  await world?.close();
});

test("a repository is imported with the team's account, and a workload runs it", { timeout: 60_000 }, async () => {
  github.routes.set("/user", answer(JSON.stringify({ login: "octo" })));
  const connected = await platform.admin.query(
    'mutation { connectGithub(input: { token: "ghp_Acc0unt" }) { account { login } } }',
  );
  expect(connected.connectGithub.account.login).toBe("octo");
  const { status, body } = await platform.admin.rest("importAsset", { body: { kind: "github", repo: "team/code" } });
  expect([status, body.state, body.name]).toEqual([201, "ready", "code"]);
  expect(new Set(github.seen.map((s) => s.authorization))).toEqual(new Set(["Bearer ghp_Acc0unt"]));
  const id = await submit(platform.admin, { source: { command: ["sh", "say.sh"], assetId: body.id } });
  await settles(platform.admin, id);
  const log = await platform.admin.rest("getWorkloadLogs", { path: { id } });
  expect(String(log.body)).toContain("imported");
});

test("a platform that is stopped lets its import go and takes it up again", { timeout: 90_000 }, async () => {
  web.routes.set("/held.csv", () => {});
  const asked = platform.admin.rest("importAsset", { body: { kind: "url", url: `${web.origin}/held.csv` } });
  await until("the source is asked", () => web.seen.some((s) => s.path === "/held.csv"));
  const stopping = platform.stop();
  expect((await asked).status).toBe(503);
  expect(await stopping).toBe(0);
  web.routes.set("/held.csv", answer("a,b\n"));
  await platform.start();
  const ready = await until("the import is done", async () => {
    const { assets } = (await platform.admin.rest("listAssets")).body;
    return assets.find((a: { name: string; state: string }) => a.name === "held.csv" && a.state === "ready");
  });
  expect(ready).toMatchObject({ stored_bytes: 4, imported_bytes: 4 });
});

test("no credential of a source is in anything that the platform printed", () => {
  expect(platform.output).not.toContain("ghp_Acc0unt");
});
