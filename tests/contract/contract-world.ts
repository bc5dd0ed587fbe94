import { gzipSync } from "node:zlib";
import { parse } from "graphql";
import { exportDeps } from "../../roles/exports.ts";
import { appendAccountEvent } from "../../subgraphs/data/account-event/append-account-event.ts";
import { runExportJob } from "../../workers/data/run-export.ts";
import { MEMBER } from "../support/actors.ts";
import { tarOf } from "../support/archive-samples.ts";
import { jobContext } from "../support/jobs.ts";
import { csv, loadFixture } from "../support/load-fixture.ts";
import { answer, sources } from "../support/source-server.ts";
import { startTlsPostgres } from "../support/tls-postgres.ts";
import { finishedRun } from "./finished-run.ts";
import { type Answered, type Ask, restFace } from "./rest-face.ts";

/** Names that the team and the other team give to the same kind of thing. */
export const SECRET = "SHOP_DB";
export const CONNECTION = "shop";

export type ContractWorld = Awaited<ReturnType<typeof contractWorld>>;

/**
 * The REST face with a team that has one of everything: a run that has finished, one whose output goes to a table, a
 * customer's database with its secret and connection. The other team has nothing.
 */
export async function contractWorld() {
  const [postgres, web] = await Promise.all([startTlsPostgres(), sources()]);
  const github = await web.serve();
  github.routes.set("/user", answer(JSON.stringify({ login: "octo" })));
  const from = { fetch: web.fetch({ idleMs: 2_000 }), githubApiUrl: github.origin, huggingFaceUrl: github.origin };
  const face = await restFace(from, { allowPrivateHosts: ["localhost"] });
  const loads = await loadFixture(postgres, face.compute);
  await face.compute.offer({});
  const { workloadId } = await finishedRun(face);
  const loading = await loads.completedRun({ rows: csv("a\n1\n", "rows") });
  const made = async (operationId: string, ask: Ask): Promise<Answered> => {
    const answered = await face.ask(operationId, ask);
    if (answered.status >= 300) throw new Error(`${operationId} answered ${answered.status}: ${answered.text}`);
    return answered;
  };
  await made("putSecret", { body: { name: SECRET, value: postgres.secret() } });
  await made("createConnection", { body: { name: CONNECTION, kind: "postgres", secret: SECRET } });
  let names = 0;
  return {
    face,
    /** A workload with a log, an output, an event, a ledger and a route. */
    workloadId,
    /** A workload whose output `rows` was declared with a table. */
    loadingId: loading.workloadId,
    /** A name that nothing has yet, in what every noun allows. */
    newName: () => `thing_${++names}`,
    /** Id of a new asset of the team. */
    async asset(): Promise<string> {
      const body = gzipSync(await tarOf([{ path: "main.py", content: `${++names}` }]));
      const headers = { "content-type": "application/octet-stream" };
      return (await made("uploadAsset", { body, headers, query: { name: "code.tar.gz" } })).body.id;
    },
    /** Id of a new workload of the team, which waits for a worker. */
    async workload(): Promise<string> {
      const headers = { "idempotency-key": `key-${++names}` };
      return (await made("createWorkload", { body: { source: { command: ["true"] } }, headers })).body.id;
    },
    /** Name of a new secret of the team. */
    async secret(): Promise<string> {
      const name = `SECRET_${++names}`;
      await made("putSecret", { body: { name, value: "a value" } });
      return name;
    },
    /** Id of a new connection of the team. */
    async connection(): Promise<string> {
      const name = `shop_${++names}`;
      return (await made("createConnection", { body: { name, kind: "postgres", secret: SECRET } })).body.id;
    },
    /** Id of a new pool of the team. */
    async pool(): Promise<string> {
      return (await made("createPool", { body: { name: `rack ${++names}` } })).body.id;
    },
    /** Does what a worker would: all imports of a query that wait. */
    async runExports(): Promise<void> {
      const { db, clock } = face.compute;
      const waiting = await db.sql<{ id: string }>("select id from data.query_export where state = 'pending'");
      const { body } = runExportJob(exportDeps(face.parts));
      for (const { id } of waiting) await body({ exportId: id }, jobContext({ db, clock }));
    },
    /** Id of a new key of the team. */
    async apiKey(): Promise<string> {
      const input = { name: `key ${++names}`, scopes: ["workloads:read"] };
      const source = "mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { id } } }";
      const request = { document: parse(source), variables: { input }, actor: MEMBER, requestId: "world" };
      const { data } = await face.gateway.execute(request);
      return (data as { createApiKey: { apiKey: { id: string } } }).createApiKey.apiKey.id;
    },
    /** The team's account at GitHub. */
    async github(): Promise<void> {
      const source = 'mutation { connectGithub(input: { token: "ghp_one" }) { __typename } }';
      await face.gateway.execute({ document: parse(source), actor: MEMBER, requestId: "world" });
    },
    /** Id of a delivery to the team's webhook that was given up. */
    async delivery(): Promise<string> {
      const { db, clock } = face.compute;
      await made("putWebhook", { body: { url: "https://hooks.example.com/a" } });
      await db.command((tx) =>
        appendAccountEvent(tx, {
          ...{ tenantId: MEMBER.tenantId, type: "asset.ready", payload: { asset_id: "asset_1" }, now: clock.now() },
        }),
      );
      const [row] = await db.sql<{ id: string }>(
        `update data.webhook_delivery set state = 'failed', ended_at = $2
          where id = (select id from data.webhook_delivery where tenant_id = $1 order by id desc limit 1) returning id`,
        [MEMBER.tenantId, clock.now()],
      );
      return row!.id;
    },
    async webhook(): Promise<void> {
      await made("putWebhook", { body: { url: "https://hooks.example.com/a" } });
    },
    async close() {
      await loads.close();
      await Promise.all([face.close(), postgres.close(), web.close()]);
    },
  };
}
