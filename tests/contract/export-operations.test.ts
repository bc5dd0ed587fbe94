import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exportDeps } from "../../roles/exports.ts";
import { runExportJob } from "../../workers/data/run-export.ts";
import { jobContext } from "../support/jobs.ts";
import { startTlsPostgres, type TlsPostgres } from "../support/tls-postgres.ts";
import { type RestFace, restFace } from "./rest-face.ts";

let face: RestFace;
let postgres: TlsPostgres;
beforeAll(async () => {
  [face, postgres] = await Promise.all([restFace(undefined, { allowPrivateHosts: ["localhost"] }), startTlsPostgres()]);
  for (const as of ["member", "stranger"] as const) {
    await face.ask("putSecret", { body: { name: "SHOP_DB", value: postgres.secret() }, as });
    await face.ask("createConnection", { body: { name: `shop-of-${as}`, kind: "postgres", secret: "SHOP_DB" }, as });
  }
}, 60_000);
afterAll(async () => {
  await Promise.all([face?.close(), postgres?.close()]);
});

const SQL = "select i as id, 'row ' || i as name from generate_series(1, 3) i";
const importQuery = (body: object = {}, as: "member" | "team" | "stranger" | null = "member") =>
  face.ask("importAsset", {
    body: { kind: "connection_query", connection_id: "shop-of-member", sql: SQL, format: "csv", ...body },
    as,
  });
const getAsset = async (id: string) => (await face.ask("getAsset", { path: { id } })).body;

/** Does what a worker would. */
async function run(exportId: string): Promise<void> {
  const { db, clock } = face.compute;
  const deps = exportDeps(face.parts);
  await runExportJob(deps).body({ exportId }, jobContext({ db, clock }));
}

describe("an import of a query", () => {
  it("is admitted, made and listed, then given again to who allows that", async () => {
    const admitted = await importQuery();
    expect(admitted.status).toBe(202);
    const { id, export: pending } = admitted.body;
    expect(admitted.body).toMatchObject({ kind: "connection_query", state: "importing", name: "data.csv" });
    expect(pending).toMatchObject({ asset_id: id, format: "csv", state: "pending" });
    expect(pending).not.toHaveProperty("branch");
    expect((await face.ask("deleteAsset", { path: { id } })).body.error).toBe("asset_in_use");
    expect((await face.ask("deleteConnection", { path: { id: "shop-of-member" } })).body.error).toBe(
      "connection_in_use",
    );
    await run(pending.id);
    const ready = await getAsset(id);
    expect(ready).toMatchObject({
      state: "ready",
      stored_bytes: 32,
      export: { state: "ready", row_count: 3, bytes: 32 },
    });
    expect((await face.ask("listAssets")).body.assets).toEqual([ready]);
    const reused = await importQuery({ reuse: true });
    expect([reused.status, reused.body]).toEqual([200, ready]);
    expect((await importQuery({}, "team")).status).toBe(202);
  });

  it("wants credentials, and knows connections of its own team only", async () => {
    expect((await importQuery({}, null)).status).toBe(401);
    const foreign = await importQuery({}, "stranger");
    expect([foreign.status, foreign.body]).toMatchObject([400, { error: "connection_not_found" }]);
  });

  it.each([
    [{ sql: "select 1; select 2" }, "invalid_query", "A second statement begins, line 1, column 11."],
    [{ sql: "drop table a" }, "invalid_query", "The query must begin with SELECT or WITH."],
    [{ branch: "main" }, "branch_mismatch", "The branch is not the connection's."],
    [{ connection_id: undefined }, "invalid_import", "A query needs the connection that it reads."],
    [{ repo: "a/b" }, "invalid_import", "An import of kind connection_query takes no repo."],
    [{ token: "t" }, "token_not_allowed", expect.any(String)],
  ])("with %j is refused as %s", async (body, error, message) => {
    const refused = await importQuery(body);
    expect([refused.status, refused.body]).toMatchObject([400, { error, message }]);
  });

  it("that fails keeps its asset, which says why, and shows no export any more", async () => {
    const { body } = await importQuery({ sql: "select 'hunter2'::int as a" });
    await run(body.export.id);
    const failed = await getAsset(body.id);
    expect(failed).toMatchObject({
      ...{ state: "failed", stored_bytes: 0 },
      error: "query_failed: The database refused the query with SQLSTATE 22P02.",
    });
    expect(failed).not.toHaveProperty("export");
    expect((await face.ask("deleteAsset", { path: { id: body.id } })).status).toBe(204);
  });
});
