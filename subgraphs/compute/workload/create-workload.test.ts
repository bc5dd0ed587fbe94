import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { insertAccount, TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type ComputeGraph, computeGraph, MEMBER, STRANGER, TEAM_KEY } from "../../../tests/support/compute-graph.ts";
import { putSecret } from "../../data/secret/secret.commands.ts";
import { createPool } from "../../pools/pool/pool.commands.ts";
import { auditBooks, grantCredit, openAccount, setLimits } from "../account/account.commands.ts";
import { createWorkload } from "./create-workload.ts";

let graph: ComputeGraph;
beforeAll(async () => {
  graph = await computeGraph();
});
afterAll(() => graph.close());
beforeEach(async () => {
  await graph.db.sql(
    `truncate compute.account, compute.workload, compute.stage, compute.workload_event, compute.ledger_entry,
       infra.outbox, infra.idempotency_key, data.secret, data.asset cascade`,
  );
  await graph.offer(); // none
  await insertAccount(graph.db, graph.clock.now());
});

const CREATE = `mutation ($workload: WorkloadSpecInput!, $key: String!) {
  createWorkload(input: { workload: $workload, idempotencyKey: $key }) {
    workload { id status revision name ownerUserId payload maxCostUsd completeBy createdAt
      events { seq type payload } stages { stageId status position continuityMode generation } }
    replayed status revision
  }
}`;
const workload = { source: { image: "busybox:1", command: ["echo", "hi"] } };

async function create(given: object = {}, key = "key-1", actor = MEMBER) {
  return graph.run(CREATE, { workload: { ...workload, ...given }, key }, actor);
}

/** Code and status of the only error. */
function refusal(answer: Awaited<ReturnType<typeof create>>) {
  expect(answer.errors).toHaveLength(1);
  const { code, status, field, detail } = answer.errors![0]!.extensions as Record<string, unknown>;
  return { code, status, field, detail };
}

const counts = async () => {
  const [row] = await graph.db.sql<{ workloads: bigint; keys: bigint; events: bigint; jobs: bigint; runs: number }>(
    `select (select count(*) from compute.workload) as workloads, (select count(*) from infra.idempotency_key) as keys,
       (select count(*) from compute.workload_event) as events, (select count(*) from infra.outbox) as jobs,
       (select active_runs from compute.account where id = $1) as runs`,
    [TENANT],
  );
  return {
    ...row!,
    workloads: Number(row!.workloads),
    keys: Number(row!.keys),
    events: Number(row!.events),
    jobs: Number(row!.jobs),
  };
};

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
    expect(await counts()).toEqual({ workloads: 0, keys: 0, events: 0, jobs: 0, runs: 0 });
    expect((await create({ requirements: { gpu: "H100" } })).errors).toBeUndefined();
  });

  test("a key without credentials or without the scope gets nothing", async () => {
    expect(refusal(await graph.run(CREATE, { workload, key: "k" }, null))).toMatchObject({ code: "unauthorized" });
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

describe("money at the door", () => {
  const price = { rateMicrosPerHour: 6_000_000n };

  test("without a payment method nothing is admitted, credits or not", async () => {
    await setLimits(graph.db, TENANT, { paymentMethod: false }, graph.clock.now());
    expect(refusal(await create())).toMatchObject({ code: "payment_method_required", status: 402 });
    expect(await counts()).toEqual({ workloads: 0, keys: 0, events: 0, jobs: 0, runs: 0 });
  });

  test("credits that do not cover the first window are refused with the numbers", async () => {
    await graph.offer(price, { ...price, sku: "dear", rateMicrosPerHour: 60_000_000n });
    await graph.db.sql("update compute.account set balance_micros = 200000, held_micros = 100000");
    // 6 dollars an hour for a minute, a tenth of it as fee, and what rounding may take.
    expect(refusal(await create())).toEqual({
      code: "budget_exceeded",
      status: 402,
      field: undefined,
      detail: {
        month_to_date_usd: 0,
        estimated_cost_usd: 0.110001,
        accruing_usd: 0,
        in_flight_committed_usd: 0.1,
        remaining_headroom_usd: 0.1,
      },
    });
    await grantCredit(graph.db, { teamId: TENANT, micros: 10_001n, note: "" }, graph.clock.now());
    expect((await create()).errors).toBeUndefined();
  });

  test("a limit of its own below the first window is refused with what the start takes, and one that covers it is not", async () => {
    await graph.offer(price);
    expect(refusal(await create({ outcome: { maxCostUsd: 0.11 } }, "small"))).toMatchObject({
      code: "budget_exceeded",
      status: 402,
      field: "/outcome/max_cost_usd",
      detail: { estimated_cost_usd: 0.110001 },
    });
    expect(await counts()).toEqual({ workloads: 0, keys: 0, events: 0, jobs: 0, runs: 0 });
    expect((await create({ outcome: { maxCostUsd: 0.110001 } }, "small")).errors).toBeUndefined();
  });

  test("a monthly cap counts what this month was charged and what is held, and another month counts as nothing", async () => {
    await graph.offer(price);
    const set = (month: string) =>
      graph.db.sql(
        `update compute.account set monthly_cap_micros = 1000000, month_spend_micros = 800000, held_micros = 100000, month_start = $1`,
        [new Date(month)],
      );
    await set("2026-03-01T00:00:00Z");
    expect(refusal(await create()).detail).toEqual({
      monthly_spend_cap_usd: 1,
      month_to_date_usd: 0.8,
      estimated_cost_usd: 0.110001,
      accruing_usd: 0,
      in_flight_committed_usd: 0.1,
      remaining_headroom_usd: 0.1,
    });
    await set("2026-02-01T00:00:00Z");
    expect((await create()).errors).toBeUndefined();
  });

  test("the last credit cannot be spent twice by price unknown: nothing left is a refusal without any offer", async () => {
    await graph.db.sql("update compute.account set balance_micros = 5, held_micros = 5");
    expect(refusal(await create()).detail).toMatchObject({ estimated_cost_usd: 0, remaining_headroom_usd: 0 });
  });

  test("as many workloads as are allowed get in, however many come at once", async () => {
    await setLimits(graph.db, TENANT, { concurrentRunsLimit: 7 }, graph.clock.now());
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => create({}, `key-${i}`)));
    const refused = answers.filter((a) => a.errors);
    expect(refused).toHaveLength(13);
    for (const answer of refused) expect(refusal(answer)).toMatchObject({ code: "too_many_runs", status: 429 });
    expect(await counts()).toMatchObject({ workloads: 7, keys: 7, runs: 7 });
    const { id } = answers.find((a) => !a.errors)!.data.createWorkload.workload;
    await graph.run(`mutation { cancelWorkload(input: { id: "${id}" }) { status } }`);
    expect(await counts()).toMatchObject({ runs: 6 });
    expect((await create({}, "one-more")).errors).toBeUndefined();
  });

  test("books that do not add up stop admission until they do", async () => {
    await graph.db.sql("delete from compute.account");
    const account = { teamId: TENANT, creditMicros: 5_000_000n, paymentMethod: true, concurrentRunsLimit: 10 };
    await graph.db.command((tx) => openAccount(tx, account, graph.clock.now()));
    expect(await auditBooks(graph.db, TENANT)).toBe(true);
    await graph.db.sql("update compute.account set balance_micros = balance_micros + 1");
    expect(await auditBooks(graph.db, TENANT)).toBe(false);
    expect(refusal(await create())).toMatchObject({ code: "spend_check_unavailable", status: 503 });
    expect(await counts()).toEqual({ workloads: 0, keys: 0, events: 0, jobs: 0, runs: 0 });
    await graph.db.sql("update compute.account set balance_micros = balance_micros - 1");
    expect(await auditBooks(graph.db, TENANT)).toBe(true);
    expect((await create()).errors).toBeUndefined();
  });

  test("a measurement that fails admits nothing, and the same key works afterwards", async () => {
    await graph.db.sql("alter table compute.account rename column held_micros to held_elsewhere");
    try {
      expect(refusal(await create())).toMatchObject({ code: "spend_check_unavailable", status: 503 });
    } finally {
      await graph.db.sql("alter table compute.account rename column held_elsewhere to held_micros");
    }
    expect(await counts()).toEqual({ workloads: 0, keys: 0, events: 0, jobs: 0, runs: 0 });
    expect((await create()).errors).toBeUndefined();
  });

  test("an account is opened once, with credits that are in the books", async () => {
    const account = { teamId: "team_new", creditMicros: 7n, paymentMethod: false, concurrentRunsLimit: 1 };
    const open = () => graph.db.command((tx) => openAccount(tx, account, graph.clock.now()));
    expect([await open(), await open()]).toEqual([true, false]);
    expect(await auditBooks(graph.db, "team_new")).toBe(true);
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
    expect(await counts()).toEqual({ workloads: 0, keys: 0, events: 0, jobs: 0, runs: 0 });
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
