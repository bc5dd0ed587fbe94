import { execFile } from "node:child_process";
import { expect, test } from "vitest";
import { PROJECT_ROOT, projectFile } from "../../infra/telemetry/project-root.ts";

/** What a tool says about the project; empty when it is content. */
function complaints(script: string, ...args: string[]): Promise<string> {
  return new Promise((resolve) => {
    const command = [projectFile("node_modules", ...script.split("/")), ...args];
    execFile(process.execPath, command, { cwd: PROJECT_ROOT, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve(error ? `${stdout}${stderr}` || error.message : ""),
    );
  });
}

test("the compiler finds no fault in the sources and tests", { timeout: 120_000 }, async () => {
  expect(await complaints("typescript/bin/tsc", "--noEmit", "-p", ".")).toBe("");
});

test("Biome finds no error in the sources and tests", { timeout: 120_000 }, async () => {
  expect(await complaints("@biomejs/biome/bin/biome", "check", "--diagnostic-level=error", ".")).toBe("");
});
