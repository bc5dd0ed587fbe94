import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Refused } from "../../infra/kernel/refusal.ts";
import { readContract } from "../contract.ts";
import { BodyChecks, type CheckDepth } from "./shape.ts";

const contract = readContract(fileURLToPath(new URL("../../schema/contract/openapi.json", import.meta.url)));
const checks = new BodyChecks(contract.document);
const bodyOf = (operationId: string, depth: CheckDepth) =>
  checks.compile(contract.operations.get(operationId)!.body!, depth);
const workload = bodyOf("createWorkload", "shape");

function refusal(run: () => void): string | null {
  try {
    run();
  } catch (error) {
    if (error instanceof Refused) return `${error.kind.code} ${error.detail.field}`;
    throw error;
  }
  return null;
}

describe("the check of a body's shape", () => {
  it.each([
    [{ source: { command: "ls" } }, "invalid_request /source/command"],
    [{ requirements: { gpu_count: "2" } }, "invalid_request /requirements/gpu_count"],
    [{ placement: { pool: "p", zone: 1 } }, "unknown_field /placement/zone"],
    [{ inputs: [{ name: "a", url: "x" }] }, "unknown_field /inputs/0/url"],
    [{ inputs: [{}] }, "invalid_request /inputs/0/name"],
    [
      { rl: { schema_version: 1, environment_id: "custom", mode: "train", model: "m", planned_tasks: 1, extra: 1 } },
      "unknown_field /rl/extra",
    ],
    [
      { stages: [{ id: "a", source: {}, outputs: { o: { path: "x", other: 1 } } }] },
      "unknown_field /stages/0/outputs/o/other",
    ],
    [{ stages: [{ id: "a", source: {}, outputs: { o: 5 } }] }, "invalid_request /stages/0/outputs/o"],
    [{ connections: "one" }, "invalid_request /connections"],
  ])("refuses %j", (body, expected) => {
    expect(refusal(() => workload(body))).toBe(expected);
  });

  it.each([
    [{}],
    [{ unheard_of: 1, source: { image: "x", also_unknown: true } }],
    [
      {
        requirements: { compute_class: "abacus", gpu_count: 3 },
        placement: {},
        inputs: [{ name: "1 bad name" }],
        name: "x".repeat(500),
      },
    ],
    [{ inputs: null, stages: null, rl: null }],
  ])("leaves the values of %j to the domain, which has codes for them", (body) => {
    expect(refusal(() => workload(body))).toBeNull();
  });

  it("checks values too where a row asks for the whole schema", () => {
    const pool = bodyOf("createPool", "whole");
    expect(refusal(() => pool({ name: "" }))).toBe("invalid_request /name");
    expect(refusal(() => pool({ name: "a" }))).toBeNull();
    expect(refusal(() => bodyOf("createPool", "shape")({ name: "" }))).toBeNull();
  });

  it("allows whatever the whole schema allows", () => {
    const whole = bodyOf("createWorkload", "whole");
    const text = fc.string({ maxLength: 8 });
    const body = fc.record(
      {
        source: fc.record({ image: text, command: fc.option(fc.array(text)) }, { requiredKeys: [] }),
        inputs: fc.option(
          fc.array(
            fc.record(
              { name: fc.constantFrom("a", "b"), asset_id: fc.constantFrom("asset_1", "x") },
              { requiredKeys: ["name"] },
            ),
            { maxLength: 9 },
          ),
        ),
        requirements: fc.record({ gpu_count: fc.constantFrom(1, 2, 3), vcpus: fc.double() }, { requiredKeys: [] }),
        placement: fc.record({ pool: text, prefer: fc.constantFrom("any", "all") }, { requiredKeys: [] }),
        name: text,
        other: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(body, (value) => {
        if (refusal(() => whole(value)) === null) expect(refusal(() => workload(value))).toBeNull();
      }),
    );
  });

  it("compiles every documented body at both depths", () => {
    for (const { body } of contract.operations.values())
      if (body)
        for (const depth of ["shape", "whole"] as const) expect(checks.compile(body, depth)).toBeTypeOf("function");
  });
});
