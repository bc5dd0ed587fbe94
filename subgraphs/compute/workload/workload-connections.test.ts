import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { MEMBER } from "../../../tests/support/actors.ts";
import { insertAccount, TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type ComputeGraph, computeGraph } from "../../../tests/support/compute-graph.ts";
import { insertConnection } from "../../../tests/support/connections.ts";
import { jobContext } from "../../../tests/support/jobs.ts";
import { closeWorkloadJob } from "../../../workers/compute/close-workload.ts";
import { deleteConnection } from "../../data/connection/connection.commands.ts";
import { putSecret, retireSecret } from "../../data/secret/secret.commands.ts";
import { Stage } from "../stage/stage.entity.ts";

let graph: ComputeGraph;
beforeAll(async () => {
  graph = await computeGraph();
});
afterAll(() => graph.close());
beforeEach(async () => {
  await graph.db.sql(
    `truncate compute.account, compute.workload, compute.stage, compute.workload_event, infra.outbox, infra.idempotency_key,
       data.secret, data.secret_version, data.secret_pin, data.connection, data.connection_use cascade`,
  );
  await graph.offer({});
  await insertAccount(graph.db, graph.clock.now());
});

const now = () => graph.clock.now();
const put = (name: string, value: string) =>
  putSecret({ db: graph.db, box: graph.secretBox }, MEMBER, { name, value }, now());
const connection = (given: Partial<Parameters<typeof insertConnection>[3]> & { name: string; secret: string }) =>
  insertConnection(graph.db, TENANT, now(), { kind: "postgres", ...given });

/** A connection in live mode; its id. */
async function live(name = "my-wb"): Promise<string> {
  await put("WB", "wandb-key-1");
  const egressHosts = ["api.wandb.ai", "files.wandb.ai"];
  return connection({ name, secret: "WB", kind: "wandb", entity: "e", project: "p", liveMode: true, egressHosts });
}

const CREATE = `mutation ($workload: WorkloadSpecInput!, $key: String!) {
  createWorkload(input: { workload: $workload, idempotencyKey: $key }) { workload { id payload } } }`;
const VALIDATE =
  "mutation ($workload: WorkloadSpecInput!) { validateWorkload(input: { workload: $workload }) { valid } }";
const source = { image: "busybox:1", command: ["true"] };
let keys = 0;

async function create(given: object): Promise<{ id: string; spec: Stage["spec"]; payload: Record<string, unknown> }> {
  const answer = await graph.run(CREATE, { workload: { source, ...given }, key: `key-${++keys}` });
  expect(answer.errors).toBeUndefined();
  const { id, payload } = answer.data.createWorkload.workload;
  const stage = await graph.db.row(Stage, "where t.workload_id = $1", [id]);
  return { id, payload, spec: stage!.spec };
}

/** Code, status and field with which submitting refuses; validating alone refuses likewise. */
async function refusal(given: object): Promise<unknown[]> {
  const submitted = await graph.run(CREATE, { workload: { source, ...given }, key: `key-${++keys}` });
  const judged = await graph.run(VALIDATE, { workload: { source, ...given, outcome: { maxCostUsd: 1 } } });
  const [one, two] = [submitted, judged].map(({ errors }) => {
    const { code, status, field } = (errors?.[0]?.extensions ?? {}) as Record<string, unknown>;
    return [code, status, field];
  });
  expect(two).toEqual(one);
  expect(await graph.db.sql("select 1 from data.connection_use")).toEqual([]);
  return one!;
}

const sinkInto = (...sinks: { connection: string; table: string }[]) => ({
  source: undefined,
  stages: [
    { id: "main", source, outputs: Object.fromEntries(sinks.map((sink, n) => [`o${n}`, { path: `o${n}.csv`, sink }])) },
  ],
});
const revealed = (holderId: string) => graph.deps.secrets.reveal(graph.db, { tenantId: TENANT, holderId });

test("a run with a live connection is given the key, where to log, and the hosts for it, encrypted only", async () => {
  const id = await live();
  const made = await create({ connections: ["my-wb"], policy: { egressAllow: ["pypi.org"] }, sweepId: "sweep-7" });
  expect(made.spec).toMatchObject({
    needsIsolation: true,
    network: { mode: "allowlist", hosts: ["api.wandb.ai", "files.wandb.ai", "pypi.org"], httpsOnly: true },
    secretEnv: { WANDB_API_KEY: `connection/${id}` },
    env: {
      ...{ WANDB_ENTITY: "e", WANDB_PROJECT: "p", WANDB_RUN_GROUP: "sweep-7" },
      ...{ WANDB_NAME: `${made.id}-main`, NODUS_CONN_MY_WB_KIND: "wandb" },
    },
  });
  expect(await revealed(made.id)).toEqual([{ name: `connection/${id}`, value: "wandb-key-1" }]);
  expect(made.payload.connections).toEqual(["my-wb"]);
  expect(JSON.stringify(made)).not.toContain("wandb-key-1");
});

test("runs of one workload are grouped by its id unless a sweep is named, and an id names a connection too", async () => {
  const id = await live();
  const made = await create({ connections: [id] });
  expect(made.spec.env).toMatchObject({ WANDB_RUN_GROUP: made.id });
});

test("an admitted run keeps the credential after rotation; nothing new gets it", async () => {
  const id = await live();
  const made = await create({ connections: ["my-wb"], policy: { secretRefs: ["WB"] } });
  await put("WB", "wandb-key-2");
  expect(await revealed(made.id)).toEqual([
    { name: "WB", value: "wandb-key-1" },
    { name: `connection/${id}`, value: "wandb-key-1" },
  ]);
  await retireSecret(graph.db, MEMBER, "WB", now());
  expect(await revealed(made.id)).toHaveLength(2);
  await expect(deleteConnection(graph.db, MEMBER, id, now())).rejects.toMatchObject({
    kind: { code: "connection_in_use" },
    detail: { extra: { holder_id: made.id } },
  });
});

test("a finished workload lets go of its connection", async () => {
  const id = await live();
  const made = await create({ connections: ["my-wb"] });
  await graph.run(`mutation { cancelWorkload(input: { id: "${made.id}" }) { status } }`);
  await closeWorkloadJob(graph.deps).body({ workloadId: made.id }, jobContext(graph));
  expect(await revealed(made.id)).toEqual([]);
  await deleteConnection(graph.db, MEMBER, id, now());
});

test("a connection that is not there, not live, rotated or too narrow is refused where it is named", async () => {
  await live();
  await put("DB", "postgres://a:bcd@db.example/x");
  await connection({ name: "calm", secret: "WB", kind: "wandb" });
  await connection({ name: "reader", secret: "DB" });
  const sink = "/stages/0/outputs/o0/sink/connection";
  expect(await refusal({ connections: ["none"] })).toEqual(["connection_not_found", 400, "/connections/0"]);
  expect(await refusal({ connections: ["calm"] })).toEqual(["live_mode_required", 409, "/connections/0"]);
  expect(await refusal({ connections: ["reader"] })).toEqual(["live_mode_required", 409, "/connections/0"]);
  expect(await refusal(sinkInto({ connection: "none", table: "t" }))).toEqual(["connection_not_found", 400, sink]);
  expect(await refusal(sinkInto({ connection: "reader", table: "t" }))).toEqual(["connection_scope", 403, sink]);
  expect(await refusal(sinkInto({ connection: "my-wb", table: "t" }))).toEqual(["connection_kind", 400, sink]);
  await put("WB", "wandb-key-2");
  expect(await refusal({ connections: ["my-wb"] })).toEqual(["connection_inactive", 409, "/connections/0"]);
});

test("another team's connection is not there", async () => {
  const id = await live();
  await graph.db.sql("update data.connection set tenant_id = 'team_other'");
  expect(await refusal({ connections: [id] })).toEqual(["connection_not_found", 400, "/connections/0"]);
});

test("a live connection needs capacity that isolates, and no pool's machine", async () => {
  await live();
  await graph.offer({ isolated: false });
  expect(await refusal({ connections: ["my-wb"] })).toEqual(["isolated_execution_unavailable", 409, "/connections/0"]);
  expect(await refusal({ connections: ["my-wb"], placement: { pool: "pool_1" } })).toEqual([
    "isolated_execution_unavailable",
    409,
    "/placement/pool",
  ]);
});

test("an output's table is pinned with the credential of now, and is kept in the request as it was sent", async () => {
  await put("DB", "postgres://a:bcd@db.example/x");
  const id = await connection({ name: "shop", secret: "DB", scope: "readwrite" });
  const made = await create(sinkInto({ connection: "shop", table: "Rows" }, { connection: id, table: "more" }));
  const [secret] = await graph.db.sql<{ id: string }>("select id from data.secret");
  expect(made.spec).toMatchObject({
    outputs: { o0: "o0.csv", o1: "o1.csv" },
    sinks: {
      o0: { connectionId: id, table: "rows", secretId: secret!.id, secretVersion: 1 },
      o1: { connectionId: id, table: "more", secretId: secret!.id, secretVersion: 1 },
    },
    needsIsolation: false,
  });
  expect(made.payload.stages).toMatchObject([
    { outputs: { o0: { path: "o0.csv", sink: { connection: "shop", table: "Rows" } } } },
  ]);
  await expect(deleteConnection(graph.db, MEMBER, "shop", now())).rejects.toMatchObject({
    kind: { code: "connection_in_use" },
  });
});

test("one table is not filled twice by a stage, though it is named in two ways", async () => {
  await put("DB", "postgres://a:bcd@db.example/x");
  const id = await connection({ name: "shop", secret: "DB", scope: "write" });
  const twice = sinkInto({ connection: "shop", table: "rows" }, { connection: id, table: "ROWS" });
  expect(await refusal(twice)).toEqual(["duplicate_sink_target", 400, "/stages/0/outputs/o1/sink"]);
});

test("secrets are referred to by name or id; the variable has the name either way", async () => {
  await put("A", "value-of-a");
  const b = await put("B", "value-of-b");
  const made = await create({ policy: { secretRefs: ["A", b.id] } });
  expect(made.spec.secretEnv).toEqual({ NODUS_SECRET_A: "A", NODUS_SECRET_B: "B" });
  expect(await revealed(made.id)).toEqual([
    { name: "A", value: "value-of-a" },
    { name: "B", value: "value-of-b" },
  ]);
  const unknown = { policy: { secretRefs: ["A", "sec_00000000000000000000000000000000"] } };
  expect(await refusal(unknown)).toEqual(["secret_not_found", 400, "/policy/secret_refs/1"]);
});
