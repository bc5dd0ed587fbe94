import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmod, link, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { seccompProgram } from "../runner/isolation/seccomp.ts";
import { projectFile } from "../telemetry/project-root.ts";
import { type Confined, startConfined } from "./confined-child.ts";
import { findConfinement } from "./confinement.ts";
import { requirePlainFile } from "./plain-file.ts";
import { runColumnar } from "./run-columnar.ts";

const MEMORY = 320 * 1024 * 1024;
const ROOT = process.getuid?.() === 0;
const FILTERED = seccompProgram(process.arch) !== null;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "nodus-confined-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** What a child says that runs this code instead of a task. */
async function said(confined: Confined, code: string): Promise<Record<string, unknown>> {
  const nodeArguments = ["--input-type=commonjs", "-e", code];
  const child = await startConfined({ confined, folder, memoryLimitBytes: MEMORY, nodeArguments }, ["input"]);
  const closed = once(child, "close");
  const answer = await Promise.race([once(child, "message"), closed.then(() => null)]);
  child.kill("SIGKILL");
  await closed;
  expect(answer, "the child could say what it saw").not.toBeNull();
  return answer![0] as Record<string, unknown>;
}

/** Tries to leave, in every way that code in the engine could. */
const waysOut = (port: number) => `
const fs = require("node:fs"), net = require("node:net"), { spawnSync } = require("node:child_process");
const attempt = (act) => { try { act(); return "ok"; } catch (error) { return error.code; } };
const connected = (options) => new Promise((resolve) => net.connect(options)
  .once("connect", () => resolve("ok")).once("error", (error) => resolve(error.code)));
(async () => {
  const status = fs.readFileSync("/proc/self/status", "utf8");
  process.send({
    reads: ["/etc/passwd", ${JSON.stringify(projectFile("package.json"))}, "/root", ${JSON.stringify(tmpdir())}]
      .map((file) => attempt(() => fs.statSync(file).isDirectory() ? fs.readdirSync(file) : fs.readFileSync(file))),
    writes: ["/escape", "/tmp/escape", "/usr/escape", "/dev/escape", "/nodus/infra/columnar/child.ts", "/nodus/node",
      "/proc/sys/kernel/hostname"].map((file) => attempt(() => fs.appendFileSync(file, "x"))),
    own: attempt(() => fs.writeFileSync("/task/mine", fs.readFileSync("/task/input"))),
    connected: await connected({ host: "127.0.0.1", port: ${port} }),
    other: attempt(() => process.kill(${process.pid}, 0)),
    processes: fs.readdirSync("/proc").filter((name) => Number(name)).length,
    namespaces: spawnSync("unshare", ["-U", "true"]).status,
    capabilities: /CapEff:\\s*(\\w+)/.exec(status)[1] + /CapBnd:\\s*(\\w+)/.exec(status)[1],
    gains: /NoNewPrivs:\\s*(\\d)/.exec(status)[1],
    filter: /Seccomp:\\s*(\\d)/.exec(status)[1],
    uid: process.getuid(),
    variables: Object.keys(process.env).sort(),
  });
})();`;

describe.each([
  { ownUser: true, runs: ROOT },
  { ownUser: false, runs: true },
])("a child with ownUser $ownUser", ({ ownUser, runs }) => {
  const confined: Confined = { level: "bubblewrap", ownUser, seccomp: FILTERED };

  test.runIf(runs)(
    "is kept by its confinement from the machine's files, its network and its processes",
    async () => {
      const server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
      await once(server, "listening");
      try {
        await writeFile(path.join(folder, "input"), "mine", { mode: 0o600 });
        const found = await said(confined, waysOut((server.address() as AddressInfo).port));
        expect(found.reads).not.toContain("ok");
        expect(found.writes).not.toContain("ok");
        expect(found).toMatchObject({ own: "ok", connected: "ECONNREFUSED", other: "ESRCH", gains: "1" });
        expect(found).toMatchObject({ capabilities: "0".repeat(32), filter: FILTERED ? "2" : "0" });
        expect(found.namespaces).not.toBe(0);
        expect(found.processes).toBeLessThanOrEqual(3);
        expect(found.variables).not.toContain("HOME");
        if (ownUser) expect(found.uid).toBeGreaterThanOrEqual(199_000);
        expect(await readFile(path.join(folder, "mine"), "utf8")).toBe("mine");
      } finally {
        server.close();
      }
    },
    30_000,
  );

  test.runIf(runs)(
    "does a task whose files only this process's user may read",
    async () => {
      await chmod(folder, 0o700);
      await writeFile(path.join(folder, "in.csv"), '"1"\n"2"\n', { mode: 0o600 });
      const options = { folder, memoryLimitBytes: MEMORY, timeoutMs: 30_000, signal: new AbortController().signal };
      const columns = [{ name: "a", type: "int32" as const }];
      for (const output of ["one.parquet", "one.parquet"]) {
        const task = { kind: "csvToParquet", input: "in.csv", output, columns } as const;
        expect(await runColumnar(task, { ...options, confinement: confined })).toEqual({ rows: 2 });
        expect((await readFile(path.join(folder, output))).subarray(0, 4).toString()).toBe("PAR1");
      }
    },
    40_000,
  );
});

test("root's children get a user of their own, and others none where that does not work", async () => {
  const tried: boolean[] = [];
  const only = (works: (ownUser: boolean) => boolean) =>
    findConfinement(async ({ ownUser }) => {
      tried.push(ownUser);
      return works(ownUser) ? null : "no namespaces";
    });
  expect(await only(() => true)).toMatchObject({ level: "bubblewrap", ownUser: ROOT });
  expect(await only((ownUser) => !ownUser)).toMatchObject({ level: "bubblewrap", ownUser: false });
  expect(await only(() => false)).toMatchObject({ level: "none", reason: expect.stringContaining("no namespaces") });
  expect(tried).toEqual(ROOT ? [true, true, false, true, false] : [false, false, false]);
});

test("without a confinement a task is still done", async () => {
  await writeFile(path.join(folder, "in.csv"), "a\n1\n");
  const limits = { rows: 9, columns: 9, recordBytes: 99, rowGroupBytes: 99 };
  const options = { folder, memoryLimitBytes: MEMORY, timeoutMs: 30_000, signal: new AbortController().signal };
  const confinement = { level: "none", reason: "bubblewrap is not installed" } as const;
  const task = { kind: "describe", input: "in.csv", format: "csv", limits } as const;
  expect(await runColumnar(task, { ...options, confinement })).toMatchObject({ rows: 1 });
}, 40_000);

test("what a child left is taken only when it is a file of its own", async () => {
  const at = (name: string) => path.join(folder, name);
  await writeFile(at("plain"), "x");
  await requirePlainFile(at("plain"));
  await symlink(at("plain"), at("symbolic"));
  await writeFile(at("twice"), "x");
  await link(at("twice"), at("hard"));
  execFileSync("mkfifo", [at("pipe")]);
  for (const name of ["symbolic", "hard", "pipe", "absent"])
    await expect(requirePlainFile(at(name)), name).rejects.toMatchObject({ reason: "crashed" });
});
