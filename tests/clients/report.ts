import type { FuzzReport } from "./made-up-requests.ts";
import type { CheckResult } from "./release-checks.ts";

const MARK = { passed: "ok", failed: "FAILED", absent: "–" } as const;

/** One column of the table: a client release and what its checks found. */
export interface Column {
  readonly release: string;
  readonly results: readonly CheckResult[];
}

/** A table of checks by release, then how many of each outcome every release has. */
export function checkTable(columns: readonly Column[]): string {
  const names = [...new Set(columns.flatMap(({ results }) => results.map(({ check }) => check)))];
  const width = Math.max(...names.map((name) => name.length)) + 2;
  const cell = (text: string) => text.padEnd(9);
  const lines = [`${"check".padEnd(width)}${columns.map(({ release }) => cell(release)).join("")}`];
  for (const name of names) {
    const marks = columns.map(({ results }) => {
      const result = results.find(({ check }) => check === name);
      return cell(result ? MARK[result.outcome] : "not run");
    });
    lines.push(`${name.padEnd(width)}${marks.join("")}`.trimEnd());
  }
  lines.push("", ...columns.map(countsOf));
  return lines.join("\n");
}

function countsOf({ release, results }: Column): string {
  const count = (kind: CheckResult["kind"], outcome: CheckResult["outcome"]) =>
    results.filter((result) => result.kind === kind && result.outcome === outcome).length;
  const failed = count("served", "failed") + count("refused", "failed");
  const absent = count("served", "absent") + count("refused", "absent");
  return (
    `${release}: ${count("served", "passed")} checks of served calls passed, ${count("refused", "passed")} calls ` +
    `refused as expected, ${failed} failed, ${absent} not in this release`
  );
}

/** What failed, each with its reason. */
export function failuresOf(columns: readonly Column[]): string[] {
  return columns.flatMap(({ release, results }) =>
    results.filter(({ outcome }) => outcome === "failed").map(({ check, detail }) => `${release}: ${check}: ${detail}`),
  );
}

/** A round of made-up requests in a few lines. */
export function fuzzLines({ title, requests, operations, failures, evidence, summary }: FuzzReport): string {
  const head = `${title}: ${requests} made-up requests to ${operations} operations, ${failures} different failures`;
  return [head, evidence, summary].filter((part) => part !== "").join("\n");
}
