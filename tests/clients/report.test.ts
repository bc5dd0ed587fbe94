import { expect, test } from "vitest";
import { loggedErrors } from "./logged-errors.ts";
import type { CheckResult } from "./release-checks.ts";
import { newestBeforeOne } from "./releases.ts";
import { checkTable, failuresOf } from "./report.ts";

const result = (check: string, outcome: CheckResult["outcome"], kind: CheckResult["kind"] = "served"): CheckResult => ({
  ...{ check, outcome, kind, seconds: 0 },
  detail: outcome === "failed" ? "why" : "",
});

const columns = [
  { release: "0.2.0", results: [result("get", "passed"), result("freeze", "passed", "refused")] },
  { release: "0.1.0", results: [result("get", "failed"), result("freeze", "absent", "refused")] },
];

test("the table says of every check and release what came of it, and counts", () => {
  const lines = checkTable(columns).split("\n");
  expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
    ["check", "0.2.0", "0.1.0", ""],
    ["get", "ok", "FAILED"],
    ["freeze", "ok", "–"],
    [""],
    ["0.2.0: 1 checks of served calls passed, 1 calls refused as expected, 0 failed, 0 not in this release"],
    ["0.1.0: 0 checks of served calls passed, 0 calls refused as expected, 1 failed, 1 not in this release"],
  ]);
  expect(failuresOf(columns)).toEqual(["0.1.0: get: why"]);
});

test("a check that a release never came to is not counted as passed", () => {
  const broken = [columns[0]!, { release: "0.1.0", results: [result("get", "passed")] }];
  expect(checkTable(broken)).toMatch(/freeze +ok +not run/);
});

test("the newest release below 1 is found among newer ones", () => {
  expect(newestBeforeOne(["1.0.1", "1.0.0", "0.11.0", "0.2.0"])).toBe("0.11.0");
  expect(newestBeforeOne(["1.0.0"])).toBeNull();
});

test("errors of a log are counted by what they say, and other lines are passed over", () => {
  const failed = JSON.stringify({ level: "error", msg: "request failed", err: { message: "no" } });
  const output = ["nodus is ready", JSON.stringify({ level: "warn", msg: "slow" }), failed, failed, '{"level":"err'];
  expect(loggedErrors(output.join("\n"))).toEqual(["2 × request failed: no"]);
});
