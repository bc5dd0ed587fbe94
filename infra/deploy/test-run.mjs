import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { handOver, pinnedNode } from "./hand-over.mjs";

/**
 * Runs the test suite. The last line on standard output is `N passed, N failed, N skipped`, counted by the runner
 * itself. Before it every skipped test is named, with what it lacks, and every test that passed only at a second try.
 */
export async function runTests(root, args) {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-summary-"));
  const file = path.join(folder, "summary.json");
  const runner = path.join(root, "node_modules", "vitest", "vitest.mjs");
  const reporters = ["--reporter=default", `--reporter=${path.join(root, "tests", "support", "summary-reporter.ts")}`];
  try {
    const code = await handOver(pinnedNode(root), [runner, "run", ...reporters, ...args], {
      cwd: root,
      env: {
        ...process.env,
        VITEST_SUMMARY_FILE: file,
        PATH: `${path.join(root, "node_modules", ".bin")}:${process.env.PATH}`,
      },
    });
    if (!existsSync(file)) throw new Error(`the test runner ended with exit code ${code} and without a report`);
    const summary = JSON.parse(readFileSync(file, "utf8"));
    for (const { name, reason } of summary.skips) process.stdout.write(`skipped: ${name}: ${reason}\n`);
    for (const { name, firstFailure } of summary.unsteady)
      process.stdout.write(`passed only at a second try: ${name}\n${firstFailure}\n`);
    process.stdout.write(`${summary.passed} passed, ${summary.failed} failed, ${summary.skipped} skipped\n`);
    return code === 0 && summary.failed > 0 ? 1 : code;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
