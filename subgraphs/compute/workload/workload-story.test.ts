import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount, insertPlaced, TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type Answer, type ComputeGraph, computeGraph } from "../../../tests/support/compute-graph.ts";
import { charge, post } from "../ledger/ledger.commands.ts";
import { appendEvent, moveWorkload } from "./workload.transitions.ts";

let graph: ComputeGraph;
let placed: Awaited<ReturnType<typeof insertPlaced>>[];

beforeAll(async () => {
  graph = await computeGraph();
  const { db, clock } = graph;
  await graph.offer({});
  await insertAccount(db, clock.now());
  placed = [];
  for (let i = 0; i < 50; i++) placed.push(await insertPlaced(db, clock.now(), { maxCostMicros: 1_000_000n }));
});
afterAll(() => graph.close());

const STORY = `fragment Story on Workload {
  id status spendUsd waitingReason owner { id }
  stages { stageId status latestManifest { id } placements { generation } }
  placements { id generation sku rejected attempts bootSeconds bootOk actualHours checkpoints origin continuityMode recoverySeconds }
  meter { totalNowUsd settledUsd } ledger { entries { entryType creditUsd currency } settlement { status balanceUsd } }
  events(first: 10) { seq type } liveLog { chunks { text } nextCursor } log { bytes }
  outputs { name download } artifacts { id } latestCheckpoint { id } route unitMetrics { unitsCompleted } links { url }
}`;

test("fifty workloads with everything on them take as many statements as one, and each names the tenant", async () => {
  const one = await graph.watch(`${STORY} query { workloads(first: 1) { nodes { ...Story } } }`);
  const fifty = await graph.watch(`${STORY} query { workloads(first: 50) { nodes { ...Story } } }`);
  expect(one.answer.errors).toBeUndefined();
  expect(fifty.answer.data.workloads.nodes).toHaveLength(50);
  expect(fifty.statements).toEqual(one.statements);
  expect(fifty.statements.length).toBeLessThanOrEqual(14);
  expect(fifty.statements.filter((text) => !/\btenant_id = /.test(text))).toEqual([]);
});

test("a meter adds what was posted to what is used, and never more than is held", async () => {
  const { db, clock } = graph;
  const { workloadId, placementId } = placed[0]!;
  const METER = `{ workload(id: "${workloadId}") { meter { settledUsd accruingUsd accruingRateUsdHour totalNowUsd asOf
    computeSettledUsd platformFeeSettledUsd subscriptionSettledUsd computeAccruingUsd platformFeeAccruingUsd } } }`;
  const meter = async () => (await graph.run(METER)).data.workload.meter;
  expect(await meter()).toMatchObject({ settledUsd: 0, accruingUsd: 0, accruingRateUsdHour: 0, totalNowUsd: 0 });

  await db.sql("update compute.placement set state = 'running', running_at = $2 where id = $1", [
    placementId,
    clock.now(),
  ]);
  await clock.advance(36_000);
  // 100,000 micros an hour for a hundredth of it, and a tenth as fee.
  expect(await meter()).toEqual({
    settledUsd: 0,
    accruingUsd: 0.0011,
    accruingRateUsdHour: 0.11,
    totalNowUsd: 0.0011,
    asOf: clock.now().toISOString(),
    computeSettledUsd: 0,
    platformFeeSettledUsd: 0,
    subscriptionSettledUsd: 0,
    computeAccruingUsd: 0.001,
    platformFeeAccruingUsd: 0.0001,
  });
  await clock.advance(3_600_000);
  expect(await meter()).toMatchObject({ accruingUsd: 0.001834, totalNowUsd: 0.001834 });

  await db.sql("update compute.placement set state = 'ended', ran_ms = 36000 where id = $1", [placementId]);
  expect(await meter()).toMatchObject({ accruingUsd: 0.0011, accruingRateUsdHour: 0 });
  await db.command(async (tx) => {
    await tx.sql("update compute.placement set state = 'closed', charged_micros = 1100 where id = $1", [placementId]);
    const evidence = { kind: "compute" };
    await post(
      tx,
      TENANT,
      workloadId,
      placementId,
      [
        { account: "compute_revenue", entryType: "customer_charge", creditMicros: 1000n, evidence },
        { account: "platform_fee_revenue", entryType: "customer_charge", creditMicros: 100n },
        { account: "customer_credit", entryType: "settle_close", debitMicros: 1100n },
        { account: "operator_loss", entryType: "operator_loss", debitMicros: 50n },
        { account: "supplier_cost", entryType: "operator_loss", creditMicros: 50n },
      ],
      clock.now(),
    );
    await charge(tx, TENANT, workloadId, 1100n, clock.now());
  });
  expect(await meter()).toMatchObject({
    settledUsd: 0.0011,
    accruingUsd: 0,
    totalNowUsd: 0.0011,
    computeSettledUsd: 0.001,
    platformFeeSettledUsd: 0.0001,
  });
});

test("a ledger shows the customer's side, whose charges add up to the price", async () => {
  const { workloadId } = placed[0]!;
  const LEDGER = `{ workload(id: "${workloadId}") { ledger {
    entries { id correlationId entryType debitUsd creditUsd currency evidence createdAt }
    settlement { status balanceUsd correlationId closedAt } } } }`;
  const { data } = await graph.run(LEDGER);
  const { entries, settlement } = data.workload.ledger;
  expect(entries.map((e: object) => ({ ...e, id: undefined, createdAt: undefined }))).toEqual([
    {
      correlationId: placed[0]!.placementId,
      entryType: "customer_charge",
      debitUsd: 0,
      creditUsd: 0.001,
      currency: "USD",
      evidence: { kind: "compute" },
    },
    {
      correlationId: placed[0]!.placementId,
      entryType: "customer_charge",
      debitUsd: 0,
      creditUsd: 0.0001,
      currency: "USD",
      evidence: null,
    },
    {
      correlationId: placed[0]!.placementId,
      entryType: "settle_close",
      debitUsd: 0.0011,
      creditUsd: 0,
      currency: "USD",
      evidence: null,
    },
  ]);
  expect(settlement).toEqual({ status: "open", balanceUsd: 0, correlationId: workloadId, closedAt: null });
  await graph.db.sql("update compute.workload set settled_at = $2 where id = $1", [workloadId, graph.clock.now()]);
  const closed = await graph.run(LEDGER);
  expect(closed.data.workload.ledger.settlement).toMatchObject({
    status: "settled",
    closedAt: graph.clock.now().toISOString(),
  });
});

test("a route holds facts of the machine and nothing of who supplies it", async () => {
  const { workloadId } = placed[1]!;
  await graph.db.sql(
    `update compute.placement set rejected = '{"counts": {"region": 2}, "examples": [{"sku": "x", "region": "y", "reason": "region"}]}'
     where workload_id = $1`,
    [workloadId],
  );
  const { data } = await graph.run(`{ workload(id: "${workloadId}") { route } }`);
  expect(data.workload.route).toEqual({
    offer_id: "local-cpu",
    fit_class: "cpu_fallback",
    compute_class: "vm",
    resources: { vcpus: 0.1, host_memory_gb: 0.5, device_memory_gb: 0, disk_gb: 0, gpu_count: 0 },
    memory_gb: 0.5,
    price_usd_hour: 0.1,
    interruptible: false,
    region: "local",
    expected_cost_usd: null,
    expected_hours: null,
    remaining_budget_usd: 1,
    cost: null,
    fallback_graph: null,
    rejected: [{ reason: "region" }],
  });
});

test("outputs are those of the generation that completed a stage, without the runner's own", async () => {
  const { db, clock } = graph;
  const { workloadId, stageRunId } = placed[2]!;
  const add = (name: string, generation: number) =>
    db.sql(
      `insert into compute.output (id, tenant_id, workload_id, stage_id, generation, name, sha256, bytes, media, is_tar, created_at)
       values ($1, $2, $3, 'main', $4, $5, 'ab', 3, 'text/plain', false, $6)`,
      [`${name}-${generation}`, TENANT, workloadId, generation, name, clock.now()],
    );
  await add("model.bin", 1);
  await add("model.bin", 2);
  await add("NODUS.meta", 2);
  const OUTPUTS = `{ workload(id: "${workloadId}") { outputs { name generation download } } }`;
  expect((await graph.run(OUTPUTS)).data.workload.outputs).toEqual([]);
  await db.sql("update compute.stage set status = 'completed', generation = 2 where id = $1", [stageRunId]);
  expect((await graph.run(OUTPUTS)).data.workload.outputs).toEqual([
    { name: "model.bin", generation: 2, download: `/v1/workloads/${workloadId}/outputs/model.bin?stage=main` },
  ]);
  const one = (name: string) => graph.run(`{ workload(id: "${workloadId}") { output(name: "${name}") { sha256 } } }`);
  expect((await one("model.bin")).data.workload.output).toEqual({ sha256: "ab" });
  expect((await one("other")).errors![0]!.extensions).toMatchObject({ code: "output_not_found", status: 404 });
  await db.sql("update compute.output set removed_at = $1", [clock.now()]);
  expect((await one("model.bin")).errors![0]!.extensions).toMatchObject({ code: "output_gone", status: 410 });
});

test("one name in two stages is ambiguous until a stage is named", async () => {
  const { db, clock } = graph;
  const { workloadId, stageRunId } = placed[3]!;
  await db.sql("update compute.stage set status = 'completed' where id = $1", [stageRunId]);
  await db.sql(
    `insert into compute.stage (id, tenant_id, workload_id, stage_id, position, status, spec, continuity_mode, generation, fence,
       completed_units, total_units, next_try_at, failed_offer_ids, recoveries, created_at)
     select $1 || '2', tenant_id, workload_id, 'eval', 1, status, spec, continuity_mode, 1, fence, 0, 0, next_try_at, '{}', 0, created_at
     from compute.stage where id = $1`,
    [stageRunId],
  );
  for (const stage of ["main", "eval"])
    await db.sql(
      `insert into compute.output (id, tenant_id, workload_id, stage_id, generation, name, sha256, bytes, media, is_tar, created_at)
       values ($1, $2, $3, $4, 1, 'out', $4, 3, 'text/plain', false, $5)`,
      [`${workloadId}-${stage}`, TENANT, workloadId, stage, clock.now()],
    );
  const one = (args: string) =>
    graph.run(`{ workload(id: "${workloadId}") { output(name: "out" ${args}) { sha256 } } }`);
  expect((await one("")).errors![0]!.extensions).toMatchObject({ code: "ambiguous_output", status: 409 });
  expect((await one('stageId: "eval"')).data.workload.output).toEqual({ sha256: "eval" });
});

test("unit metrics count each unit once, and are null where nothing was observed", async () => {
  const { db, clock } = graph;
  const { workloadId, placementId } = placed[4]!;
  const METRICS = `{ workload(id: "${workloadId}") { unitMetrics { unitsCompleted p50Ms p95Ms costPerUnitUsd droppedObservations } } }`;
  expect((await graph.run(METRICS)).data.workload.unitMetrics).toBeNull();
  for (let i = 1; i <= 4; i++)
    await db.sql(
      "insert into compute.unit_observation (workload_id, stage_id, unit_id, ms, created_at) values ($1, 'main', $2, $3, $4)",
      [workloadId, `u${i}`, i * 10, clock.now()],
    );
  await db.sql("update compute.placement set dropped_units = 2 where id = $1", [placementId]);
  await db.sql("update compute.workload set spend_micros = 10 where id = $1", [workloadId]);
  expect((await graph.run(METRICS)).data.workload.unitMetrics).toEqual({
    unitsCompleted: 4,
    p50Ms: 25,
    p95Ms: 38.5,
    costPerUnitUsd: 0.000002,
    droppedObservations: 2,
  });
});

test("a checkpoint counts as one to go on from when it holds files", async () => {
  const { db, clock } = graph;
  const { workloadId } = placed[5]!;
  const add = (id: string, sequence: number, manifest: object) =>
    db.sql(
      `insert into compute.manifest (id, tenant_id, workload_id, stage_id, generation, sequence, final, manifest, created_at)
       values ($1, $2, $3, 'main', 1, $4, false, $5, $6)`,
      [id, TENANT, workloadId, sequence, JSON.stringify(manifest), clock.now()],
    );
  await add("manifest_1", 1, { files: [{ bytes: 7 }, { bytes: 5 }] });
  await add("manifest_2", 2, { files: [], outputs: {} });
  const { data } = await graph.run(`{ workload(id: "${workloadId}") { artifacts { id sequence } latestCheckpoint { id }
    stages { latestManifest { id } } placements { checkpoints checkpointBytes } } }`);
  expect(data.workload).toEqual({
    artifacts: [
      { id: "manifest_1", sequence: 1 },
      { id: "manifest_2", sequence: 2 },
    ],
    latestCheckpoint: { id: "manifest_1" },
    stages: [{ latestManifest: { id: "manifest_1" } }],
    placements: [{ checkpoints: 1, checkpointBytes: 12 }],
  });
});

test("events are paged by their number", async () => {
  const { workloadId } = placed[6]!;
  await graph.db.command(async (tx) => {
    for (let i = 0; i < 5; i++) await appendEvent(tx, workloadId, `workload.test_${i}`, {}, graph.clock.now());
  });
  const seqs = async (args: string) => {
    const { data, errors } = await graph.run(`{ workload(id: "${workloadId}") { events${args} { seq } } }`);
    return errors ? errors[0]!.extensions.code : data.workload.events.map((e: { seq: number }) => e.seq);
  };
  expect(await seqs("")).toEqual([1, 2, 3, 4, 5]);
  expect(await seqs("(after: 2, first: 2)")).toEqual([3, 4]);
  expect(await seqs("(after: 5)")).toEqual([]);
  expect(await seqs("(after: 2147483647)")).toEqual([]);
  expect(await seqs("(after: -1)")).toBe("invalid_cursor");
  expect(await seqs("(first: 101)")).toBe("invalid_limit");
});

test("cancelling is safe in every state: it never changes what is over, and asks once", async () => {
  const { db, clock } = graph;
  const cancel = (id: string) =>
    graph.run(`mutation { cancelWorkload(input: { id: "${id}" }) { status workload { status } } }`);
  const { workloadId } = placed[7]!;
  expect((await cancel(workloadId)).data.cancelWorkload).toEqual({
    status: "cancel_requested",
    workload: { status: "cancelled" },
  });
  const before = await db.sql("select revision, event_seq, updated_at from compute.workload where id = $1", [
    workloadId,
  ]);
  await clock.advance(1000);
  expect((await cancel(workloadId)).data.cancelWorkload).toEqual({
    status: "cancel_requested",
    workload: { status: "cancelled" },
  });
  expect(
    await db.sql("select revision, event_seq, updated_at from compute.workload where id = $1", [workloadId]),
  ).toEqual(before);

  const running = placed[8]!;
  await db.sql("update compute.placement set state = 'running', running_at = $2, lease_expires_at = $3 where id = $1", [
    running.placementId,
    clock.now(),
    new Date(clock.now().getTime() + 90_000),
  ]);
  await db.sql("update compute.workload set status = 'running' where id = $1", [running.workloadId]);
  for (let i = 0; i < 2; i++)
    expect((await cancel(running.workloadId)).data.cancelWorkload.workload.status).toBe("running");
  expect(await db.sql("select want from compute.placement where id = $1", [running.placementId])).toEqual([
    { want: "cancel" },
  ]);
  const asked = await db.sql("select type, payload from compute.workload_event where workload_id = $1", [
    running.workloadId,
  ]);
  expect(asked).toEqual([
    { type: "workload.cancel_requested", payload: { status: "running", revision: 4, by: "mem_one" } },
  ]);
  await db.command((tx) => moveWorkload(tx, running.workloadId, { event: "complete", now: clock.now() }));
  expect((await cancel(running.workloadId)).data.cancelWorkload.workload.status).toBe("completed");
});

test("hostile text in any argument is an ordinary refusal or finds nothing", async () => {
  const texts = ["a\0b", "\ud800", "'; drop table compute.workload; --", "x".repeat(100_000), "../..", "😀"];
  const documents = [
    "query ($t: ID!) { workload(id: $t) { id } node(id: $t) { id } }",
    "query ($t: String!) { workloads(after: $t) { nodes { id } } }",
    "query ($t: String!) { workloads(status: [$t]) { nodes { id } } }",
    `query ($t: String!) { workload(id: "${placed[9]!.workloadId}") { output(name: $t, stageId: $t) { name } } }`,
    `query ($t: String!) { workload(id: "${placed[9]!.workloadId}") { log(stageId: $t) { bytes } } }`,
    `query ($t: String!) { workload(id: "${placed[9]!.workloadId}") { liveLog(after: $t) { nextCursor } } }`,
    "mutation ($t: ID!) { cancelWorkload(input: { id: $t }) { status } }",
    "mutation ($t: String!) { grantCredit(input: { amountUsd: 1, note: $t }) { account { id } } }",
    'mutation ($t: String!) { createWorkload(input: { workload: { source: { command: ["a"] }, requirements: { notes: $t } }, idempotencyKey: $t }) { status } }',
    "mutation ($t: String!) { validateWorkload(input: { workload: { source: { command: [$t] }, outcome: { maxCostUsd: 1 }, requirements: { model: $t } } }) { valid } }",
    "mutation ($t: String!) { validateWorkload(input: { workload: { source: { assetId: $t }, outcome: { maxCostUsd: 1 }, policy: { dataRegions: [$t], secretRefs: [$t] } } }) { valid } }",
  ];
  for (const document of documents)
    for (const t of texts) {
      const { errors = [] } = await graph.run(document, { t });
      for (const error of errors)
        expect([document, t.slice(0, 20), error.extensions.status, error.message]).toEqual([
          document,
          t.slice(0, 20),
          expect.any(Number),
          expect.any(String),
        ]);
      expect(errors.map((e) => e.extensions.status as number).filter((status) => status > 499)).toEqual([]);
    }
  for (const document of [
    "subscription ($t: ID!) { workloadEvents(workloadId: $t) { complete } }",
    "subscription ($t: ID!) { workloadLogs(workloadId: $t) { complete } }",
    `subscription ($t: String!) { workloadLogs(workloadId: "${placed[9]!.workloadId}", after: $t) { complete } }`,
    `subscription ($t: String!) { workloadLogs(workloadId: "${placed[9]!.workloadId}", stageId: $t) { complete } }`,
  ])
    for (const t of texts) {
      const opened = await graph.subscribe(document, { t });
      expect([document, t.slice(0, 20), (opened as Answer).errors?.[0]?.extensions.status]).toEqual([
        document,
        t.slice(0, 20),
        expect.any(Number),
      ]);
    }
});

test("nesting without end is refused before anything walks it", async () => {
  let rl: unknown = 1;
  for (let i = 0; i < 5_000; i++) rl = [rl];
  const CREATE = `mutation ($rl: JSON) { createWorkload(input: { workload: { source: { command: ["a"] }, rl: $rl }, idempotencyKey: "k" }) { status } }`;
  const { errors } = await graph.run(CREATE, { rl });
  expect(errors![0]!.extensions).toMatchObject({ code: "invalid_request", status: 400 });
});
