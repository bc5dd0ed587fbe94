import { afterAll, beforeAll, expect, test } from "vitest";
import { type Answer, type PlacedGraph, placedGraph } from "../../../tests/support/compute-graph.ts";

let graph: PlacedGraph;
beforeAll(async () => {
  graph = await placedGraph();
});
afterAll(() => graph.close());

test("hostile text in any argument is an ordinary refusal or finds nothing", async () => {
  const { workloadId } = graph.placed[0]!;
  const texts = ["a\0b", "\ud800", "'; drop table compute.workload; --", "x".repeat(100_000), "../..", "😀"];
  const documents = [
    "query ($t: ID!) { workload(id: $t) { id } node(id: $t) { id } }",
    "query ($t: String!) { workloads(after: $t) { nodes { id } } }",
    "query ($t: String!) { workloads(status: [$t]) { nodes { id } } }",
    `query ($t: String!) { workload(id: "${workloadId}") { output(name: $t, stageId: $t) { name } } }`,
    `query ($t: String!) { workload(id: "${workloadId}") { log(stageId: $t) { bytes } } }`,
    `query ($t: String!) { workload(id: "${workloadId}") { liveLog(after: $t) { nextCursor } } }`,
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
    `subscription ($t: String!) { workloadLogs(workloadId: "${workloadId}", after: $t) { complete } }`,
    `subscription ($t: String!) { workloadLogs(workloadId: "${workloadId}", stageId: $t) { complete } }`,
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
