import { describe, expect, test } from "vitest";
import { type Given, judge, refusalOf, source } from "./validate-fixture.ts";

const sink = (given: object) => ({ a: { path: "x", sink: given } });

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

  test("secrets need isolation, and names that differ in case are two", () => {
    const workload = judge({ source, policy: { secret_refs: ["api_key", "API_KEY"] } });
    expect(workload.secretRefs).toEqual(["api_key", "API_KEY"]);
    expect(workload.stages[0]!.spec.needsIsolation).toBe(true);
  });

  test("a live connection needs isolation and closes the network to all but its hosts, encrypted", () => {
    const workload = judge({ source, connections: ["wb"], policy: { egress_allow: ["pypi.org"] } });
    expect(workload.liveConnection).toBe("wb");
    expect(workload.stages[0]!.spec).toMatchObject({
      needsIsolation: true,
      network: { mode: "allowlist", hosts: ["pypi.org"], httpsOnly: true },
    });
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
    ["a bucket and an asset", [{ name: "a", asset_id, bucket: {} }], "bucket_inputs_unsupported /inputs/0/bucket"],
    ["a bucket", [{ name: "a", bucket: {} }], "bucket_inputs_unsupported /inputs/0/bucket"],
    [
      "a bucket behind an input without a name",
      [{ name: "" }, { name: "a", bucket: {} }],
      "bucket_inputs_unsupported /inputs/1/bucket",
    ],
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
    ["a sink", { a: { path: "x", sink: { connection: "c", table: "t" } } }, "accepted"],
    [
      "a sink with a schema",
      sink({ connection: "c", table: "public.t" }),
      "invalid_output /stages/0/outputs/a/sink/table",
    ],
    [
      "a table of the platform's",
      sink({ connection: "c", table: "Nodus_runs" }),
      "invalid_output /stages/0/outputs/a/sink/table",
    ],
    ["a sink into nowhere", sink({ table: "t" }), "invalid_output /stages/0/outputs/a/sink/connection"],
    [
      "more about a sink",
      sink({ connection: "c", table: "t", mode: "append" }),
      "unknown_field /stages/0/outputs/a/sink/mode",
    ],
    [
      "one table twice",
      {
        a: { path: "x", sink: { connection: "c", table: "t" } },
        b: { path: "y", sink: { connection: "c", table: "T" } },
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
    ["a connection", { connections: ["wandb"] }, "accepted"],
    ["a connection with a dot", { connections: ["a.b"] }, "invalid_connection /connections/0"],
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
