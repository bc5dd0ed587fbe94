import { describe, expect, test } from "vitest";
import { type Given, judge, refusalOf, source } from "./validate-fixture.ts";

test("the smallest workload gets every default written out", () => {
  const { payload, stages, maxCostMicros, completeBy, needsIsolation } = judge({ source: { command: ["true"] } });
  expect(payload).toEqual({
    source: { image: "python:3.11-slim", command: ["true"] },
    requirements: { compute_class: "accelerator", gpu_count: 1 },
    outcome: {},
    policy: {},
    continuity: { mode: "checkpointed", resume_on_interruption: true, checkpoint_paths: ["state"] },
  });
  expect([maxCostMicros, completeBy, needsIsolation]).toEqual([null, null, false]);
  expect(stages).toEqual([
    {
      stageId: "main",
      totalUnits: 0,
      sourceAsset: null,
      sinks: [],
      spec: {
        image: "python:3.11-slim",
        command: ["true"],
        outputs: null,
        computeClass: "accelerator",
        computeClassDefaulted: true,
        gpu: null,
        gpuCount: 1,
        deviceMemoryGb: 0,
        vcpus: 0,
        diskGb: 0,
        regions: [],
        continuityMode: "checkpointed",
        resumeOnInterruption: true,
        checkpointPaths: ["state"],
        placement: { kind: "any" },
        network: { mode: "open", hosts: [], allowPrivate: ["10.1.0.0/16"] },
        needsIsolation: false,
      },
    },
  ]);
});

test("what is answered is judged the same again", () => {
  const first = judge({
    name: "run",
    source,
    requirements: { gpu: "nvidia h100", gpu_count: 2 },
    outcome: { max_cost_usd: 1.25, complete_by: "2026-03-02T00:00:00+01:00" },
    policy: { egress_allow: ["Example.COM"], secret_refs: ["KEY"] },
    continuity: { mode: "restartable" },
  });
  const again = judge(first.payload as Given);
  expect(again).toEqual(first);
});

describe("what runs", () => {
  const stage = (over: object = {}) => ({ id: "main", source, ...over });
  test.each<[string, Given, string]>([
    ["nothing", {}, "missing_source /source"],
    ["an empty source", { source: { image: "", command: [] } }, "missing_source /source"],
    ["an image alone", { source: { image: "busybox" } }, "accepted"],
    ["a source and stages", { source, stages: [stage()] }, "source_conflict /source"],
    ["an empty source beside stages", { source: {}, stages: [stage()] }, "accepted"],
    ["a stage without a source", { stages: [{ id: "main", source: {} }] }, "missing_source /stages/0/source"],
    [
      "a framework without a command",
      { framework: "train_eval", source: { image: "a" } },
      "missing_source /source/command",
    ],
    ["a framework with a command", { framework: "train_eval", source }, "stages_unsupported /framework"],
    ["an unknown framework", { framework: "other", source }, "invalid_source /framework"],
    [
      "stage paths beside a framework",
      { framework: "train_eval", source, stages: [stage({ continuity: { checkpoint_paths: ["a"] } })] },
      "invalid_checkpoint_path /stages/0/continuity/checkpoint_paths",
    ],
    ["two stages", { stages: [stage(), stage({ id: "next" })] }, "stages_unsupported /stages"],
    ["an image with a space", { source: { image: "a b" } }, "invalid_source /source/image"],
    ["an argument with NUL", { source: { command: ["a", "b\0"] } }, "invalid_source /source/command/1"],
    ["an empty program", { source: { command: ["", "b"] } }, "invalid_source /source/command/0"],
    ["a command that is too long", { source: { command: ["x".repeat(140_000)] } }, "invalid_source /source/command"],
    ["no asset id", { source: { asset_id: "../x" } }, "invalid_source /source/asset_id"],
  ])("%s: %s is %s", (_, given, verdict) => expect(refusalOf(given)).toBe(verdict));

  test("a stage's values win over the workload's, one by one, and zero inherits", () => {
    const { stages, payload } = judge({
      requirements: { gpu: "A100", peak_memory_gb: 40, vcpus: 4, disk_gb: 10 },
      continuity: { mode: "restartable", resume_on_interruption: false, checkpoint_paths: ["a"] },
      stages: [
        stage({
          requirements: { gpu: "h-100", peak_memory_gb: 0, vcpus: 8 },
          continuity: { resume_on_interruption: true, checkpoint_paths: ["b"] },
          total_units: 7,
          outputs: { model: "out/model.bin" },
        }),
      ],
    });
    expect(stages[0]).toMatchObject({ stageId: "main", totalUnits: 7 });
    expect(stages[0]!.spec).toMatchObject({
      gpu: "H100",
      deviceMemoryGb: 40,
      vcpus: 8,
      diskGb: 10,
      continuityMode: "restartable",
      resumeOnInterruption: false,
      checkpointPaths: ["b"],
      outputs: { model: "out/model.bin" },
      computeClassDefaulted: false,
    });
    expect(payload.source).toBeUndefined();
  });
});

describe("the order of stages", () => {
  const a = { id: "a", source };
  test.each<[string, unknown[], string]>([
    ["an id twice", [a, a], "invalid_stage_graph /stages/1/id"],
    ["an id with a slash", [{ ...a, id: "a/b" }], "invalid_stage_graph /stages/0/id"],
    ["an id that starts with a dot", [{ ...a, id: ".a" }], "invalid_stage_graph /stages/0/id"],
    ["an unknown dependency", [{ ...a, depends_on: ["b"] }], "invalid_stage_graph /stages/0/depends_on/0"],
    ["itself", [{ ...a, depends_on: ["a"] }], "invalid_stage_graph /stages"],
    [
      "a circle",
      [
        { ...a, depends_on: ["b"] },
        { ...a, id: "b", depends_on: ["a"] },
      ],
      "invalid_stage_graph /stages",
    ],
    [
      "an input of a stage that it does not wait for",
      [{ ...a, inputs: [{ name: "x", from_stage: "b", from_output: "o" }] }],
      "invalid_stage_graph /stages/0/inputs/0/from_stage",
    ],
    [
      "outputs of a stage named like a device",
      [{ ...a, id: "con", outputs: { o: "o" } }],
      "invalid_output /stages/0/id",
    ],
  ])("%s is refused", (_, stages, verdict) => expect(refusalOf({ stages })).toBe(verdict));

  test("a circle is named in full", () => {
    const stages = [
      { ...a, depends_on: ["b"] },
      { ...a, id: "b", depends_on: ["c"] },
      { ...a, id: "c", depends_on: ["b"] },
    ];
    expect(() => judge({ stages })).toThrow("b → c → b");
  });
});

describe("requirements", () => {
  test.each<[string, object, string]>([
    ["another class", { compute_class: "gpu" }, "invalid_compute_class /requirements/compute_class"],
    ["vm with a GPU", { compute_class: "vm", gpu: "H100" }, "invalid_compute_class /requirements/compute_class"],
    ["an unknown GPU", { gpu: "H1000" }, "invalid_gpu /requirements/gpu"],
    ["three GPUs", { gpu_count: 3 }, "invalid_gpu_count /requirements/gpu_count"],
    ["NVLink", { gpu_interconnect: "nvlink" }, "unsupported_interconnect /requirements/gpu_interconnect"],
    ["any interconnect", { gpu_interconnect: "any" }, "accepted"],
    ["negative memory", { peak_memory_gb: -1 }, "invalid_requirements /requirements/peak_memory_gb"],
    ["infinite cores", { vcpus: Number.POSITIVE_INFINITY }, "invalid_requirements /requirements/vcpus"],
    ["an old word", { optimization: "fastest" }, "accepted"],
    ["a word that never was", { optimization: "best" }, "invalid_requirements /requirements/optimization"],
    ["an expected runtime", { expected_runtime_hours: 3 }, "accepted"],
  ])("%s", (_, requirements, verdict) => expect(refusalOf({ source, requirements })).toBe(verdict));

  test.each([
    [{}, true],
    [{ gpu_count: 1 }, true],
    [{ compute_class: "" }, true],
    [{ compute_class: "accelerator" }, false],
    [{ gpu: "T4" }, false],
    [{ gpu_count: 2 }, false],
    [{ peak_memory_gb: 16 }, false],
    [{ compute_class: "vm" }, false],
  ])("of %j, whether the CPU may stand in is %s", (requirements, standsIn) => {
    expect(judge({ source, requirements }).stages[0]!.spec.computeClassDefaulted).toBe(standsIn);
  });
});

describe("continuity", () => {
  test.each<[string, object, string]>([
    ["another mode", { mode: "durable" }, "invalid_continuity_mode /continuity/mode"],
    ["an absolute path", { checkpoint_paths: ["/a"] }, "invalid_checkpoint_path /continuity/checkpoint_paths/0"],
    [
      "the runner's folder",
      { checkpoint_paths: ["a", ".nodus/x"] },
      "invalid_checkpoint_path /continuity/checkpoint_paths/1",
    ],
    ["the whole folder", { checkpoint_paths: ["."] }, "accepted"],
    [
      "too many paths",
      { checkpoint_paths: Array(65).fill("a") },
      "invalid_checkpoint_path /continuity/checkpoint_paths",
    ],
    ["an unknown integration", { integration: "jax" }, "invalid_integration /continuity/integration"],
    ["an integration without an asset", { integration: "auto" }, "invalid_integration /continuity/integration"],
  ])("%s", (_, continuity, verdict) => expect(refusalOf({ source, continuity })).toBe(verdict));

  test("a managed integration is refused where sources are not prepared", () => {
    const prepared = { ...source, asset_id: "asset_1" };
    expect(refusalOf({ source: prepared, continuity: { integration: "auto" } })).toBe(
      "preparation_unavailable /continuity/integration",
    );
  });

  test("nothing of an ephemeral run is done again by itself", () => {
    const { stages, payload } = judge({ source, continuity: { mode: "ephemeral" } });
    expect(stages[0]!.spec.resumeOnInterruption).toBe(false);
    expect(payload.continuity.resume_on_interruption).toBe(true);
  });
});
