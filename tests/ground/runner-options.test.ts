import { execFile } from "node:child_process";
import { expect, test } from "vitest";
import { projectFile } from "../../infra/telemetry/project-root.ts";

/** What `npm run soak` and `npm run test:clients` call. */
test.each([
  ["tests/load/soak/run.mjs", ["--hour", "1"]],
  ["tests/load/soak/run.mjs", ["--hours", "long"]],
  ["tests/clients/run.mjs", ["--releases", "0.11.0"]],
  ["tests/clients/run.mjs", ["--only", "both"]],
])(
  "%s refuses %j with its usage, and runs nothing",
  async (file, args) => {
    const { code, stderr } = await run(projectFile(file), args);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^usage: npm run /m);
    expect(stderr).not.toContain("    at ");
  },
  30_000,
);

function run(file: string, args: string[]): Promise<{ code: unknown; stderr: string }> {
  return new Promise((resolve) =>
    execFile(process.execPath, [file, ...args], { timeout: 25_000 }, (error, _stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stderr }),
    ),
  );
}
