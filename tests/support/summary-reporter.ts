import { writeFileSync } from "node:fs";
import type { Reporter, TestModule, TestResult, TestSuite } from "vitest/node";

interface Summary {
  passed: number;
  failed: number;
  skipped: number;
  skips: { name: string; reason: string }[];
  /** Tests that failed first and then passed: each is a fault of the test or of the product that wants to be found. */
  unsteady: { name: string; firstFailure: string }[];
}

/**
 * Writes the run's counts to the file that `VITEST_SUMMARY_FILE` names. What fails outside a test (a file that cannot
 * be loaded, a hook, an unhandled error) counts as a failure of its own: a run without failures has none of these.
 */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const file = process.env.VITEST_SUMMARY_FILE;
    if (!file) return;
    const summary: Summary = { passed: 0, failed: unhandledErrors.length, skipped: 0, skips: [], unsteady: [] };
    for (const module of modules) {
      summary.failed += failuresOutsideTests(module);
      countTests(module, summary);
    }
    writeFileSync(file, JSON.stringify(summary));
  }
}

function failuresOutsideTests(module: TestModule): number {
  const containers: (TestModule | TestSuite)[] = [module, ...module.children.allSuites()];
  return containers.filter((container) => container.errors().length > 0).length;
}

function countTests(module: TestModule, summary: Summary): void {
  for (const test of module.children.allTests()) {
    const result = test.result();
    if (test.diagnostic()?.flaky) summary.unsteady.push({ name: test.fullName, firstFailure: firstFailure(result) });
    if (result.state === "passed") summary.passed++;
    else if (result.state === "skipped") {
      summary.skipped++;
      summary.skips.push({ name: test.fullName, reason: result.note ?? "no reason given" });
    } else summary.failed++; // failed, or still pending when the run ended
  }
}

function firstFailure({ errors }: TestResult): string {
  const [error] = errors ?? [];
  if (!error) return "why is not known";
  const place = error.stacks?.find(({ file }) => !file.includes("/node_modules/"));
  return `${error.message}${error.diff ? `\n${error.diff}` : ""}${place ? `\n  at ${place.file}:${place.line}` : ""}`;
}
