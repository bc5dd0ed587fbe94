import { afterAll, beforeAll, expect, test } from "vitest";
import { type PlacedGraph, placedGraph } from "../../../tests/support/compute-graph.ts";
import { appendEvent } from "./workload.transitions.ts";

let graph: PlacedGraph;
beforeAll(async () => {
  graph = await placedGraph(50);
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

test("a route holds facts of the machine and nothing of who supplies it", async () => {
  const { workloadId } = graph.placed[1]!;
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

test("events are paged by their number", async () => {
  const { workloadId } = graph.placed[6]!;
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
