import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { MEMBER, STRANGER, TEAM_KEY } from "../../../tests/support/actors.ts";
import { TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type ComputeGraph, computeGraph } from "../../../tests/support/compute-graph.ts";
import { NOTHING, refusal, Submits, workload } from "../../../tests/support/submits.ts";
import { putSecret } from "../../data/secret/secret.commands.ts";
import { createPool } from "../../pools/pool/pool.commands.ts";
import { openAccount } from "../account/account.commands.ts";
import { createWorkload } from "./create-workload.ts";

let graph: ComputeGraph;
let submits: Submits;
beforeAll(async () => {
  graph = await computeGraph();
  submits = new Submits(graph);
});
afterAll(() => graph.close());
beforeEach(() => submits.begin());

const create: Submits["create"] = (...given) => submits.create(...given);
const counts = () => submits.counts();

describe("submitting", () => {
  test("a workload is accepted with its stage, its first event and its job, all at once", async () => {
    const { data } = await create({ name: "first", outcome: { maxCostUsd: 1.5, completeBy: "2026-03-01T01:00:00Z" } });
    expect(data.createWorkload).toMatchObject({
      replayed: false,
      status: "accepted",
      revision: 1,
      workload: {
        id: expect.stringMatching(/^wl_[0-9a-f]{32}$/),
        status: "accepted",
        revision: 1,
        name: "first",
        ownerUserId: "mem_one",
        maxCostUsd: 1.5,
        stages: [{ stageId: "main", status: "placing", position: 0, continuityMode: "checkpointed", generation: 0 }],
        events: [
          {
            seq: 1,
            type: "workload.accepted",
            payload: {
              status: "accepted",
              revision: 1,
              name: "first",
              max_cost_usd: 1.5,
              complete_by: "2026-03-01T01:00:00.000Z",
              owner_user_id: "mem_one",
              network: "open",
            },
          },
        ],
      },
    });
    const jobs = await graph.db.sql("select job, due_at from infra.outbox order by job");
    expect(jobs).toEqual([
      { job: "compute.enforceDeadline", due_at: new Date("2026-03-01T01:00:00Z") },
      { job: "compute.placeStage", due_at: graph.clock.now() },
    ]);
    expect(await counts()).toEqual({ workloads: 1, keys: 1, events: 1, jobs: 2, runs: 1 });
  });

  test("a team's key submits for nobody in particular", async () => {
    const { data } = await create({}, "key-1", TEAM_KEY);
    expect(data.createWorkload.workload.ownerUserId).toBeNull();
  });

  test("the next event takes the number after the first", async () => {
    const { data } = await create();
    const { id } = data.createWorkload.workload;
    await graph.run(`mutation { cancelWorkload(input: { id: "${id}" }) { status } }`);
    const { data: seen } = await graph.run(`{ workload(id: "${id}") { events { seq type } } }`);
    expect(seen.workload.events).toEqual([
      { seq: 1, type: "workload.accepted" },
      { seq: 2, type: "workload.cancel_requested" },
      { seq: 3, type: "workload.cancelled" },
    ]);
  });

  test("secrets are pinned at their version of now, and an unknown one is refused", async () => {
    await graph.offer({});
    const deps = { db: graph.db, box: graph.secretBox };
    await putSecret(deps, MEMBER, { name: "API_KEY", value: "sesame-1" }, graph.clock.now());
    const { data } = await create({ policy: { secretRefs: ["API_KEY"] } });
    await putSecret(deps, MEMBER, { name: "API_KEY", value: "sesame-2" }, graph.clock.now());
    const holderId = data.createWorkload.workload.id;
    const values = await graph.deps.secrets.reveal(graph.db, { tenantId: TENANT, holderId });
    expect(values).toEqual([{ name: "API_KEY", value: "sesame-1" }]);
    expect(JSON.stringify(data)).not.toContain("sesame");
    expect(refusal(await create({ policy: { secretRefs: ["API_KEY", "NOT_HERE"] } }, "key-2"))).toMatchObject({
      code: "secret_not_found",
      field: "/policy/secret_refs/1",
    });
  });

  test("an asset that is not the team's is refused where it is named", async () => {
    const answer = await create({ source: { command: ["true"], assetId: "asset_1" } });
    expect(refusal(answer)).toMatchObject({ code: "asset_not_found", status: 400, field: "/source/asset_id" });
    const input = await create({ inputs: [{ name: "a", assetId: "asset_2" }] });
    expect(refusal(input)).toMatchObject({ code: "asset_not_found", field: "/inputs/0/asset_id" });
    expect(await counts()).toMatchObject({ workloads: 0, keys: 0 });
  });

  test("rows of a connection are refused where the work's data may not be, and taken where they may", async () => {
    await graph.offer({});
    await graph.db.sql(
      `insert into data.asset (id, tenant_id, kind, name, state, sha256, format, stored_bytes, imported_bytes, created_at,
         ready_at, region)
       select id, $1, kind, 'data.parquet', 'ready', repeat('a', 64), 'file', 1, 1, $2, $2, region
       from (values ('asset_eu', 'connection_query', 'eu-west'), ('asset_any', 'upload', null)) as a (id, kind, region)`,
      [TENANT, graph.clock.now()],
    );
    const inputs = ["asset_any", "asset_eu"].map((assetId) => ({ name: assetId, assetId }));
    const inUs = { policy: { dataRegions: ["us-east"] } };
    const input = await create({ ...inUs, inputs });
    expect(refusal(input)).toMatchObject({ code: "asset_region", status: 400, field: "/inputs/1/asset_id" });
    const source = await create({ ...inUs, source: { command: ["true"], assetId: "asset_eu" } });
    expect(refusal(source)).toMatchObject({ code: "asset_region", status: 400, field: "/source/asset_id" });
    expect(await counts()).toMatchObject({ workloads: 0, keys: 0 });
    expect((await create({ ...inUs, inputs: inputs.slice(0, 1) })).errors).toBeUndefined();
    const inBoth = { policy: { dataRegions: ["us-east", "eu-west"] } };
    expect((await create({ ...inBoth, inputs }, "key-2")).errors).toBeUndefined();
    expect((await create({ inputs }, "key-3")).errors).toBeUndefined();
  });

  test("a named GPU that nobody offers is accepted, to wait", async () => {
    await graph.offer({});
    const { data } = await create({ requirements: { gpu: "b200" } });
    expect(data.createWorkload.workload.payload.requirements.gpu).toBe("B200");
  });

  test("secrets and egress rules need capacity that isolates", async () => {
    await graph.offer({ isolated: false });
    const answer = await create({ policy: { egressAllow: ["example.com"] } });
    expect(refusal(answer)).toMatchObject({
      code: "isolated_execution_unavailable",
      status: 409,
      field: "/policy/egress_allow",
    });
    await graph.offer({ isolated: true });
    expect((await create({ policy: { egressAllow: ["example.com"] } })).errors).toBeUndefined();
  });

  test("a pool that is not the team's, and one without capacity, are told apart", async () => {
    expect(refusal(await create({ placement: { pool: "pool_x" } }))).toMatchObject({
      code: "pool_not_found",
      status: 400,
    });
    const { id } = await createPool(graph.db, MEMBER, { name: "mine" }, graph.clock.now());
    expect(refusal(await create({ placement: { pool: id } }))).toMatchObject({
      code: "pool_unavailable",
      status: 409,
    });
    await graph.offer({ poolId: id, tenantId: TENANT });
    expect((await create({ placement: { pool: id } })).errors).toBeUndefined();
  });

  test("a refusal of the request leaves nothing, so that the corrected request may have the same key", async () => {
    expect(refusal(await create({ requirements: { gpu: "H1" } }))).toMatchObject({
      code: "invalid_gpu",
      field: "/requirements/gpu",
    });
    expect(await counts()).toEqual(NOTHING);
    expect((await create({ requirements: { gpu: "H100" } })).errors).toBeUndefined();
  });

  test("a key without credentials or without the scope gets nothing", async () => {
    expect(refusal(await create({}, "k", null))).toMatchObject({ code: "unauthorized" });
    const reader = { ...MEMBER, scopes: ["workloads:read" as const] };
    expect(refusal(await create({}, "k", reader))).toMatchObject({ code: "insufficient_scope", status: 403 });
  });
});

describe("repeating", () => {
  test("fifty concurrent equal submits make one workload and get fifty equal answers", async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => create({ name: "same" })));
    expect(answers.flatMap((a) => a.errors ?? [])).toEqual([]);
    const submitted = answers.map((a) => a.data.createWorkload);
    expect(new Set(submitted.map((s) => s.workload.id)).size).toBe(1);
    expect(submitted.filter((s) => s.replayed)).toHaveLength(49);
    expect(new Set(submitted.map(({ replayed: _, ...rest }) => JSON.stringify(rest))).size).toBe(1);
    expect(await counts()).toEqual({ workloads: 1, keys: 1, events: 1, jobs: 1, runs: 1 });
  });

  test("the same key with another request is a conflict, and with the same one in another team is another", async () => {
    await create({ name: "a" });
    expect(refusal(await create({ name: "b" }))).toMatchObject({ code: "idempotency_conflict", status: 409 });
    await graph.db.command((tx) =>
      openAccount(
        tx,
        { teamId: STRANGER.tenantId, creditMicros: 1_000_000n, paymentMethod: true, concurrentRunsLimit: 10 },
        graph.clock.now(),
      ),
    );
    const { data } = await create({ name: "b" }, "key-1", STRANGER);
    expect(data.createWorkload.replayed).toBe(false);
  });

  test("members that are null or left out are the same request", async () => {
    await create({ name: null, requirements: { gpu: null } });
    expect((await create({ requirements: {} })).data.createWorkload.replayed).toBe(true);
    expect(refusal(await create())).toMatchObject({ code: "idempotency_conflict" });
  });

  test("a repeat is answered although the deadline has passed and the money is gone", async () => {
    const given = { outcome: { completeBy: "2026-03-01T00:00:01Z" } };
    const first = await create(given);
    await graph.db.sql("update compute.account set balance_micros = 0, payment_method = false");
    await graph.clock.advance(10_000);
    const again = await create(given);
    expect(again.data.createWorkload).toEqual({ ...first.data.createWorkload, replayed: true });
  });

  test.each([[""], ["a b"], ["x".repeat(257)], ["ü"]])("the key %j is refused", async (key) => {
    expect(refusal(await create({}, key)).code).toMatch(/_idempotency_key$/);
  });
});

describe("judging without submitting", () => {
  const VALIDATE = `mutation ($workload: WorkloadSpecInput!) {
    validateWorkload(input: { workload: $workload }) { valid submitted workload message }
  }`;
  const judge = (given: object) => graph.run(VALIDATE, { workload: { ...workload, ...given } });

  test("it answers the request with its defaults and takes nothing", async () => {
    const { data } = await judge({ outcome: { maxCostUsd: 2 } });
    expect(data.validateWorkload).toMatchObject({
      valid: true,
      submitted: false,
      workload: { source: workload.source, outcome: { max_cost_usd: 2 }, continuity: { mode: "checkpointed" } },
    });
    expect(await counts()).toEqual(NOTHING);
  });

  test("it needs a spending limit, and looks at references, but not at money", async () => {
    expect(refusal(await judge({}))).toMatchObject({ code: "max_cost_required", field: "/outcome/max_cost_usd" });
    expect(refusal(await judge({ outcome: { maxCostUsd: 0 } }))).toMatchObject({ code: "invalid_max_cost" });
    const outcome = { maxCostUsd: 1 };
    expect(refusal(await judge({ outcome, source: { assetId: "asset_1" } }))).toMatchObject({
      code: "asset_not_found",
    });
    expect(refusal(await judge({ outcome, policy: { secretRefs: ["X"] } }))).toMatchObject({
      code: "secret_not_found",
    });
    await graph.db.sql("update compute.account set balance_micros = 0");
    expect((await judge({ outcome })).errors).toBeUndefined();
  });
});

test("a command's failure that is no refusal is passed on as it is", async () => {
  const broken = { ...graph.deps, market: { view: () => Promise.reject(new Error("no market")) } as never };
  const request = { payload: { source: { command: ["true"] } }, idempotencyKey: "k" };
  await expect(createWorkload(broken, MEMBER, request, graph.clock.now())).rejects.toThrow("no market");
  expect(await counts()).toMatchObject({ workloads: 0, keys: 0 });
});

test("a disk that is nearly full admits nothing new, and a repeated key still gets its answer", async () => {
  const request = { payload: { source: { command: ["true"] } }, idempotencyKey: "before" };
  const first = await createWorkload(graph.deps, MEMBER, request, graph.clock.now());
  const full = { ...graph.deps, space: { shortage: async () => "The platform's disk is nearly full." } };
  const again = await createWorkload(full, MEMBER, request, graph.clock.now());
  expect(again).toMatchObject({ replayed: true, workload: { id: first.workload.id } });
  const refused = await createWorkload(full, MEMBER, { ...request, idempotencyKey: "new" }, graph.clock.now()).catch(
    (error) => error,
  );
  expect(refused).toMatchObject({
    message: "The platform's disk is nearly full.",
    kind: { code: "unavailable", status: 503 },
    detail: { extra: { reason: "storage_full" }, retryAfterSeconds: 30 },
  });
  expect(await counts()).toMatchObject({ workloads: 1, keys: 1 });
});
