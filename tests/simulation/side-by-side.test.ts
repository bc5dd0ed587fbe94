import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { builtCommandLine } from "../support/platform-build.ts";

const folders: string[] = [];
const started: ChildProcess[] = [];

afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

interface Running {
  child: ChildProcess;
  /** Where it puts what it throws away. */
  folder: string;
  output(): string;
  /** Resolves with the exit code. */
  over: Promise<number | null>;
}

async function sim(...options: string[]): Promise<Running> {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-sim-test-"));
  chmodSync(folder, 0o711); // so that PostgreSQL's own account can enter when root runs the tests
  folders.push(folder);
  const env = { ...process.env, TMPDIR: folder };
  const child = spawn(process.execPath, [await builtCommandLine(), "sim", ...options], { env });
  started.push(child);
  let output = "";
  child.stdout.on("data", (data) => {
    output += data;
  });
  child.stderr.on("data", (data) => {
    output += data;
  });
  return { child, folder, output: () => output, over: once(child, "close").then(([code]) => code) };
}

/** Processes whose command line names the folder: those that simulate, and their databases. */
function processesIn(folder: string): string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && commandLine(name).includes(folder));
}

function isSimulating(pid: number): boolean {
  return commandLine(pid).includes("sim-child");
}

function commandLine(pid: number | string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return ""; // it ended meanwhile
  }
}

async function until(what: string, isTrue: () => boolean): Promise<void> {
  for (let tries = 0; !isTrue(); tries++) {
    if (tries > 900) throw new Error(`not in 90 s: ${what}`);
    await sleep(100);
  }
}

const isUnderWay = ({ output }: Running) => /^seed \d+: /m.test(output());
const hasLeftNothing = ({ folder }: Running) => readdirSync(folder).length === 0 && processesIn(folder).length === 0;

test("seeds are lived through side by side and come out as they do alone, and a sum is printed at the end", async () => {
  const both = await sim("--seed", "3", "--seeds", "2", "--jobs", "2", "--hours", "0.05");
  expect(await both.over, both.output()).toBe(0);
  expect(both.output()).toMatch(/^2 seeds, \d\.\d h in .*: \d+ workloads, \d+ operations, \d+ looks$/m);
  const alone = await sim("--seed", "3", "--hours", "0.05");
  expect(await alone.over, alone.output()).toBe(0);
  const [, hash] = /^seed 3: .* trace (\w+)$/m.exec(alone.output())!;
  expect(both.output()).toContain(`trace ${hash}`);
  expect([both, alone].every(hasLeftNothing)).toBe(true);
}, 180_000);

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s ends all of them, with a word and without a trace",
  async (signal) => {
    const running = await sim("--seeds", "500", "--jobs", "2", "--hours", "0.02");
    await until("a seed is through", () => isUnderWay(running));
    running.child.kill(signal);
    expect(await running.over, running.output()).toBe(2);
    expect(running.output()).toContain(`${signal}: the simulation was ended.`);
    expect(hasLeftNothing(running)).toBe(true);
  },
  180_000,
);

test("a process that dies before its database is there leaves nothing, and the command says so", async () => {
  const running = await sim("--hours", "0.02");
  const children = () => processesIn(running.folder).map(Number);
  await until("a process has its folder", () => children().length > 0);
  process.kill(children()[0]!, "SIGKILL");
  expect(await running.over, running.output()).toBe(2);
  expect(running.output()).toContain("The process that lived through seed 1 ended by itself (SIGKILL).");
  await until("all is gone", () => hasLeftNothing(running));
}, 180_000);

test("a process that dies between two seeds ends the command with the same word", async () => {
  const running = await sim("--seeds", "500", "--hours", "0.02");
  await until("a seed is through", () => isUnderWay(running));
  running.child.kill("SIGSTOP");
  await sleep(3_000); // for the process to end its seed: nobody gives it another one
  process.kill(processesIn(running.folder).map(Number).find(isSimulating)!, "SIGKILL");
  running.child.kill("SIGCONT");
  expect(await running.over, running.output()).toBe(2);
  expect(running.output()).toMatch(/^The process that lived through seed \d+ ended by itself \(SIGKILL\)\.$/m);
  await until("all is gone", () => hasLeftNothing(running));
}, 180_000);

test("one that is killed leaves neither processes nor files", async () => {
  const running = await sim("--seeds", "500", "--jobs", "2", "--hours", "0.02");
  await until("a seed is through", () => isUnderWay(running));
  expect(processesIn(running.folder).length).toBeGreaterThan(0);
  running.child.kill("SIGKILL");
  await until("all is gone", () => hasLeftNothing(running));
}, 180_000);
