import { afterAll, beforeAll, expect, test } from "vitest";
import { TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type PlacedGraph, placedGraph } from "../../../tests/support/compute-graph.ts";

let graph: PlacedGraph;
beforeAll(async () => {
  graph = await placedGraph(4);
});
afterAll(() => graph.close());

test("outputs are those of the generation that completed a stage, without the runner's own", async () => {
  const { db, clock } = graph;
  const { workloadId, stageRunId } = graph.placed[0]!;
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
  const { workloadId, stageRunId } = graph.placed[1]!;
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
  const { workloadId, placementId } = graph.placed[2]!;
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
  const { workloadId } = graph.placed[3]!;
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
