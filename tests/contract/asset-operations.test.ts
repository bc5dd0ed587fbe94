import { Agent, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { importDeps } from "../../roles/imports.ts";
import { Asset } from "../../subgraphs/data/asset/asset.entity.ts";
import { importAssetJob } from "../../workers/data/import-asset.ts";
import { tarOf } from "../support/archive-samples.ts";
import { TENANT } from "../support/compute-fixtures.ts";
import { jobContext } from "../support/jobs.ts";
import {
  answer,
  GITHUB_COMMIT,
  playGithub,
  redirect,
  type SourceServer,
  type Sources,
  sources,
} from "../support/source-server.ts";
import { until } from "../support/until.ts";
import { type RestFace, restFace } from "./rest-face.ts";

let world: Sources;
let web: SourceServer;
let face: RestFace;
let working: Promise<void>;
let over = false;

beforeAll(async () => {
  world = await sources();
  const [github, codeload, first] = [await world.serve(), await world.serve(), await world.serve()];
  web = first;
  const archive = gzipSync(
    await tarOf([
      { path: "top/", type: "directory" },
      { path: "top/main.py", content: "1" },
    ]),
  );
  playGithub(github, codeload, "team/code", archive);
  face = await restFace({
    fetch: world.fetch({ idleMs: 2_000 }),
    githubApiUrl: github.origin,
    huggingFaceUrl: web.origin,
  });
  working = work();
}, 60_000);
afterAll(async () => {
  over = true;
  await working;
  await face?.close();
  await world?.close();
});

/** Does what a worker would: the jobs of imports, as they are asked for. */
async function work(): Promise<void> {
  const { db, secretBox } = face.parts;
  const job = importAssetJob(importDeps(face.parts), secretBox, face.parts.drain.began);
  while (!over) {
    const jobs = await db.sql<{ payload: { assetId: string } }>(
      "delete from infra.outbox where job = 'data.importAsset' returning payload",
    );
    await Promise.all(jobs.map(({ payload }) => job.body(payload, jobContext({ db, clock: face.compute.clock }))));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const importAsset = (body: unknown, as: "member" | "team" | "stranger" = "member") =>
  face.ask("importAsset", { body, as });

describe("an import", () => {
  it("answers with the ready asset, which its team alone can read", async () => {
    const made = await importAsset({ kind: "github", repo: "team/code" });
    expect([made.status, made.body.state, made.body.kind, made.body.revision]).toEqual([
      201,
      "ready",
      "github",
      GITHUB_COMMIT,
    ]);
    expect((await face.ask("getAsset", { path: { id: made.body.id } })).body).toEqual(made.body);
    expect((await face.ask("getAsset", { path: { id: made.body.id }, as: "stranger" })).status).toBe(404);
    expect((await face.ask("listAssets", { as: "stranger" })).body.assets).toEqual([]);
  });

  it("with a token is done by the process that was asked", async () => {
    const made = await importAsset({ kind: "github", repo: "team/code", ref: "main", token: "ghp_once" }, "team");
    expect([made.status, made.body.state]).toEqual([201, "ready"]);
    expect(made.text).not.toContain("ghp_once");
  });

  it.each([
    [{ kind: "ftp", url: "x" }, "invalid_import"],
    [{ kind: "connection_query", format: "xml" }, "invalid_import"],
    [{ kind: "github" }, "invalid_import"],
    [{ kind: "github", repo: "a/b", ref: "a\r\nb" }, "invalid_ref"],
    [{ kind: "github", repo: "a/b", url: "https://a.example" }, "invalid_import"],
    [{ kind: "url", url: "https://a.example/x", token: "t" }, "token_not_allowed"],
    [{ kind: "url", url: "http://a.example/x" }, "invalid_import"],
    [{ kind: "url", url: "https://a.example/x.7z" }, "unsupported_archive"],
    [{ kind: "huggingface", repo: "a/b", files: [] }, "invalid_import"],
    [{ kind: "url", url: "https://a.example/x", headers: {} }, "unknown_field"],
    [{}, "invalid_request"],
  ])("of %j is refused with 400 and makes nothing", async (body, code) => {
    const before = (await face.ask("listAssets")).body.assets.length;
    const refused = await importAsset({ ...body, ...("headers" in body ? { token: "ghp_hidden" } : {}) });
    expect([refused.status, refused.body.error]).toEqual([400, code]);
    expect(refused.text).not.toContain("ghp_hidden");
    expect((await face.ask("listAssets")).body.assets).toHaveLength(before);
  });

  it("that fails tells why, and its record stays until it is deleted", async () => {
    web.routes.set("/private.csv", redirect("https://10.1.2.3/x"));
    web.routes.set("/guarded.csv", answer("", {}, 403));
    for (const [path, code] of [
      ["/private.csv", "source_private_address"],
      ["/guarded.csv", "source_unauthorized"],
      ["/nothing.csv", "source_unavailable"],
    ]) {
      const refused = await importAsset({ kind: "url", url: `${web.origin}${path}?signature=s3cret` });
      expect([refused.status, refused.body.error]).toEqual([400, code]);
      expect(refused.text).not.toContain("s3cret");
      const [record] = (await face.ask("listAssets")).body.assets;
      expect(record).toMatchObject({ state: "failed", error: code, stored_bytes: 0 });
      expect((await face.ask("deleteAsset", { path: { id: record.id } })).status).toBe(204);
    }
  });

  it("whose archive holds more than ten thousand files is refused", async () => {
    const many = await tarOf(Array.from({ length: 10_001 }, (_, i) => ({ path: `f${i}` })));
    web.routes.set("/many.tar.gz", answer(gzipSync(many)));
    const refused = await importAsset({ kind: "url", url: `${web.origin}/many.tar.gz` });
    expect([refused.status, refused.body.error]).toEqual([400, "too_many_files"]);
  });

  it("goes on when its caller hangs up, and is found in the list; it cannot be deleted before it is over", async () => {
    const held = Promise.withResolvers<void>();
    web.routes.set("/slow.csv", (_, response) => {
      response.writeHead(200);
      response.write("a,");
      void held.promise.then(() => response.end("b\n"));
    });
    await face.app.listen({ port: 0, host: "127.0.0.1" });
    const { port } = face.app.server.address() as AddressInfo;
    const caller = request({
      ...{ port, method: "POST", path: "/v1/assets/import", agent: new Agent() },
      headers: { authorization: "Bearer member", "content-type": "application/json" },
    });
    caller.on("error", () => {}); // it is hung up on purpose
    caller.on("response", (response: IncomingMessage) => response.resume());
    caller.end(JSON.stringify({ kind: "url", url: `${web.origin}/slow.csv` }));
    const asset = await until("the import is listed", async () => {
      const { assets } = (await face.ask("listAssets")).body;
      return assets.find((a: Asset) => a.name === "slow.csv" && a.state === "importing");
    });
    caller.destroy();
    const refused = await face.ask("deleteAsset", { path: { id: asset.id } });
    expect([refused.status, refused.body.error]).toEqual([409, "asset_in_use"]);
    held.resolve();
    const read = () => face.ask("getAsset", { path: { id: asset.id } });
    await until("the import is over", async () => (await read()).body.state === "ready");
    expect((await read()).body).toMatchObject({ stored_bytes: 4, imported_bytes: 4 });
  });

  it("beside two others is refused with 409", async () => {
    web.routes.set("/held", () => {});
    const url = `${web.origin}/held`;
    const waiting = [importAsset({ kind: "url", url }, "stranger"), importAsset({ kind: "url", url }, "stranger")];
    await until("both are under way", async () => {
      const rows = await face.parts.db.rows(Asset, "where t.tenant_id <> $1 and t.state = 'importing'", [TENANT]);
      return rows.length === 2;
    });
    const third = await importAsset({ kind: "url", url }, "stranger");
    expect([third.status, third.body.error]).toEqual([409, "imports_in_progress"]);
    const ended = await Promise.all(waiting);
    expect(ended.map(({ status, body }) => [status, body.error])).toEqual([
      [400, "source_timeout"],
      [400, "source_timeout"],
    ]);
  });
});
