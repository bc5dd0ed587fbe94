import { describe, expect, test } from "vitest";
import { Refused } from "../../../../infra/kernel/refusal.ts";
import type { WorkloadPayload } from "../workload.payload.ts";
import { validateWorkload } from "./validate.ts";

const now = new Date("2026-03-01T00:00:00Z");
const settings = { now, workloadNetwork: "open" as const, allowPrivateHosts: ["10.1.0.0/16"] };
const source = { image: "busybox:1", command: ["echo", "hi"] };

type Given = { [K in keyof WorkloadPayload]?: unknown };

function judge(given: Given, repeatedMembers: string[] = []) {
  const empty = { requirements: {}, outcome: {}, policy: {}, continuity: {} };
  return validateWorkload({ ...empty, ...given } as WorkloadPayload, { ...settings, repeatedMembers });
}

/** `code field` of the refusal. */
function refusalOf(given: Given, repeatedMembers: string[] = []): string {
  try {
    judge(given, repeatedMembers);
    return "accepted";
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    expect(error.message).toMatch(/\.$/);
    return `${error.kind.code} ${error.detail.field}`;
  }
}

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
        secretEnv: {},
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

describe("outcome", () => {
  test.each<[string, object, string]>([
    ["zero dollars", { max_cost_usd: 0 }, "invalid_max_cost /outcome/max_cost_usd"],
    ["less than a micro-dollar", { max_cost_usd: 0.0000009 }, "invalid_max_cost /outcome/max_cost_usd"],
    ["negative dollars", { max_cost_usd: -1 }, "invalid_max_cost /outcome/max_cost_usd"],
    ["more than the wire holds", { max_cost_usd: 1e10 }, "invalid_max_cost /outcome/max_cost_usd"],
    ["no time", { complete_by: "tomorrow" }, "invalid_complete_by /outcome/complete_by"],
    ["a time without offset", { complete_by: "2027-01-01T00:00:00" }, "invalid_complete_by /outcome/complete_by"],
    ["a day that is not", { complete_by: "2027-02-30T00:00:00Z" }, "invalid_complete_by /outcome/complete_by"],
    ["the present", { complete_by: "2026-03-01T00:00:00Z" }, "invalid_complete_by /outcome/complete_by"],
    ["an empty deadline", { complete_by: "" }, "accepted"],
  ])("%s", (_, outcome, verdict) => expect(refusalOf({ source, outcome })).toBe(verdict));

  test("fractions of a micro-dollar are cut off", () => {
    const valid = judge({ source, outcome: { max_cost_usd: 1.2345678 } });
    expect(valid.maxCostMicros).toBe(1_234_567n);
    expect(valid.payload.outcome.max_cost_usd).toBe(1.234567);
  });
});

describe("policy", () => {
  test.each<[string, object, string]>([
    ["an empty region", { data_regions: [""] }, "invalid_policy /policy/data_regions/0"],
    ["a secret twice", { secret_refs: ["A", "A"] }, "invalid_secret_ref /policy/secret_refs/1"],
    ["no secret name", { secret_refs: ["a-b"] }, "invalid_secret_ref /policy/secret_refs/0"],
    [
      "33 secrets",
      { secret_refs: Array.from({ length: 33 }, (_, i) => `S${i}`) },
      "invalid_secret_ref /policy/secret_refs",
    ],
    ["a wildcard", { egress_allow: ["a.example", "*.example"] }, "invalid_egress_host /policy/egress_allow/1"],
    [
      "129 hosts",
      { egress_allow: Array.from({ length: 129 }, (_, i) => `h${i}.example`) },
      "invalid_egress_host /policy/egress_allow",
    ],
  ])("%s", (_, policy, verdict) => expect(refusalOf({ source, policy })).toBe(verdict));

  test("the network closes as soon as there is something to lose", () => {
    const network = (policy: object) => judge({ source, policy }).stages[0]!.spec.network;
    expect(network({}).mode).toBe("open");
    expect(network({ secret_refs: ["KEY"] })).toMatchObject({ mode: "allowlist", hosts: [] });
    expect(network({ egress_allow: ["Bücher.example", "bücher.EXAMPLE"] })).toMatchObject({
      mode: "allowlist",
      hosts: ["xn--bcher-kva.example"],
    });
  });

  test("a secret keeps the case of its name in the environment", () => {
    const { spec } = judge({ source, policy: { secret_refs: ["api_key", "API_KEY"] } }).stages[0]!;
    expect(spec.secretEnv).toEqual({ NODUS_SECRET_api_key: "api_key", NODUS_SECRET_API_KEY: "API_KEY" });
    expect(spec.needsIsolation).toBe(true);
  });
});

describe("inputs", () => {
  const asset_id = "asset_1";
  test.each<[string, unknown[], string]>([
    [
      "a name twice",
      [
        { name: "a", asset_id },
        { name: "a", asset_id },
      ],
      "invalid_input /inputs/1/name",
    ],
    ["a name with a dash", [{ name: "a-b", asset_id }], "invalid_input /inputs/0/name"],
    ["a URI", [{ name: "a", uri: "https://x.example" }], "input_uri_unsupported /inputs/0/uri"],
    ["an empty URI beside an asset", [{ name: "a", uri: "", asset_id }], "accepted"],
    ["nothing", [{ name: "a" }], "invalid_input /inputs/0"],
    ["cache alone", [{ name: "a", cache: true }], "invalid_input /inputs/0"],
    ["a bucket and an asset", [{ name: "a", asset_id, bucket: {} }], "invalid_input /inputs/0"],
    ["a bucket", [{ name: "a", bucket: {} }], "bucket_inputs_unsupported /inputs/0/bucket"],
    ["nine inputs", Array.from({ length: 9 }, (_, i) => ({ name: `i${i}`, asset_id })), "invalid_input /inputs"],
  ])("%s", (_, inputs, verdict) => expect(refusalOf({ source, inputs })).toBe(verdict));
});

describe("outputs", () => {
  test.each<[string, object, string]>([
    ["a path", { a: "x/y" }, "accepted"],
    ["an object with a path", { a: { path: "x" } }, "accepted"],
    ["names that differ in case only", { a: "x", A: "y" }, "invalid_output /stages/0/outputs/A"],
    ["a device name", { "lpt1.txt": "x" }, "invalid_output /stages/0/outputs/lpt1.txt"],
    ["a slash in a name", { "a/b": "x" }, "invalid_output /stages/0/outputs/a~1b"],
    ["the runner's name", { "nodus.meta": "x" }, "invalid_output /stages/0/outputs/nodus.meta"],
    ["a way out", { a: "../x" }, "invalid_output /stages/0/outputs/a"],
    ["an unknown member", { a: { path: "x", mode: 1 } }, "unknown_field /stages/0/outputs/a/mode"],
    ["a number", { a: 1 }, "invalid_output /stages/0/outputs/a"],
    ["a sink", { a: { path: "x", sink: { connection: "c", table: "t" } } }, "connection_not_found /stages/0/outputs"],
    [
      "one table twice",
      {
        a: { path: "x", sink: { connection: "c", table: "t" } },
        b: { path: "y", sink: { connection: "c", table: "t" } },
      },
      "duplicate_sink_target /stages/0/outputs/b/sink",
    ],
  ])("%s", (_, outputs, verdict) => expect(refusalOf({ stages: [{ id: "main", source, outputs }] })).toBe(verdict));
});

describe("placement, names and connections", () => {
  test.each<[string, Given, string]>([
    ["neither pool nor prefer", { placement: {} }, "invalid_placement /placement"],
    ["both", { placement: { pool: "p", prefer: "any" } }, "invalid_placement /placement"],
    ["another preference", { placement: { prefer: "cheap" } }, "invalid_placement /placement/prefer"],
    ["a pool with a space", { placement: { pool: " p" } }, "invalid_placement /placement/pool"],
    ["a connection", { connections: ["wandb"] }, "connection_not_found /connections/0"],
    ["two connections", { connections: ["a", "b"] }, "invalid_connection /connections"],
    ["a long name", { name: "x".repeat(121) }, "invalid_request /name"],
    ["a name with a line break", { name: "a\nb" }, "invalid_request /name"],
    ["120 characters outside the basic plane", { name: "😀".repeat(120) }, "accepted"],
    ["a sweep with a space", { sweep_id: "a b" }, "invalid_request /sweep_id"],
  ])("%s", (_, given, verdict) => expect(refusalOf({ source, ...given })).toBe(verdict));
});

describe("rl", () => {
  const rl = { schema_version: 1, environment_id: "custom", mode: "train", model: "m", planned_tasks: 5 };
  test.each<[string, unknown, string]>([
    ["whole", rl, "accepted"],
    ["null", null, "accepted"],
    ["an array", [], "invalid_rl /rl"],
    ["an unknown member", { ...rl, note: 1 }, "unknown_field /rl/note"],
    ["another version", { ...rl, schema_version: 2 }, "invalid_rl /rl/schema_version"],
    ["no version", { ...rl, schema_version: undefined }, "invalid_rl /rl/schema_version"],
    ["an unknown environment", { ...rl, environment_id: "x" }, "invalid_rl /rl/environment_id"],
    ["training where only evaluation goes", { ...rl, environment_id: "officeqa" }, "invalid_rl /rl/mode"],
    ["a model with outer spaces", { ...rl, model: " m" }, "invalid_rl /rl/model"],
    ["half a task", { ...rl, planned_tasks: 0.5 }, "invalid_rl /rl/planned_tasks"],
    ["a recipe of the customer's", { ...rl, recipe: {} }, "invalid_rl /rl/recipe"],
    ["a recipe of null", { ...rl, recipe: null }, "accepted"],
  ])("%s", (_, value, verdict) => expect(refusalOf({ source, rl: value })).toBe(verdict));

  test("a repeated member is refused in rl and nowhere else", () => {
    expect(refusalOf({ source, rl }, ["/rl/mode"])).toBe("duplicate_field /rl/mode");
    expect(refusalOf({ source, rl }, ["/name", "/rlx"])).toBe("accepted");
  });
});
