import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../tests/support/until.ts";
import { projectFile } from "../telemetry/project-root.ts";
import { Engine } from "./engine.ts";
import { runColumnar } from "./run-columnar.ts";
import type { ColumnarFailure, ColumnarTask } from "./task.ts";

const MEMORY = 320 * 1024 * 1024;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "nodus-columnar-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Reading a pipe that nobody writes to takes for ever. */
const endless = (): ColumnarTask => {
  execFileSync("mkfifo", [path.join(folder, "endless")]);
  return { kind: "csvToParquet", input: "endless", output: "out.parquet", columns: [{ name: "a", type: "text" }] };
};

const alive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false; // ESRCH: it is gone
  }
};

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);

const familyOf = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(familyOf)];

test("a task that takes too long is killed and leaves nothing", async () => {
  let child = 0;
  const options = { folder, memoryLimitBytes: MEMORY, timeoutMs: 1_000, signal: new AbortController().signal };
  const task = runColumnar(endless(), { ...options, onChild: (pid) => (child = pid) });
  await expect(task).rejects.toMatchObject({ reason: "timeout" });
  expect(alive(child)).toBe(false);
  expect(await readdir(folder)).toEqual(["endless"]);
});

test("a task whose caller gives up is killed", async () => {
  let child = 0;
  const caller = new AbortController();
  const options = { folder, memoryLimitBytes: MEMORY, timeoutMs: 60_000, signal: caller.signal };
  const task = runColumnar(endless(), { ...options, onChild: (pid) => (child = pid) });
  setTimeout(() => caller.abort(), 500);
  await expect(task).rejects.toMatchObject({ reason: "cancelled" });
  expect(alive(child)).toBe(false);
  const late: ColumnarTask = { kind: "csvToParquet", input: "endless", output: "o", columns: [] };
  await expect(runColumnar(late, options)).rejects.toMatchObject({ reason: "cancelled" });
});

test("a child that is killed is a failure like any other", async () => {
  const options = { folder, memoryLimitBytes: MEMORY, timeoutMs: 60_000, signal: new AbortController().signal };
  const task = runColumnar(endless(), {
    ...options,
    onChild: (pid) => setTimeout(() => process.kill(pid, "SIGKILL"), 300),
  });
  await expect(task).rejects.toMatchObject({ reason: "lost" });
});

test("a child that ends by a fault of its own is told apart from one that was killed", async () => {
  const options = { folder, memoryLimitBytes: MEMORY, timeoutMs: 60_000, signal: new AbortController().signal };
  const fault = (pid: number) => setTimeout(() => process.kill(familyOf(pid).at(-1)!, "SIGSEGV"), 1_000);
  await expect(runColumnar(endless(), { ...options, onChild: fault })).rejects.toMatchObject({ reason: "crashed" });
});

test("a child does not outlive a parent that was killed", async () => {
  endless();
  const entry = projectFile("tests/support/columnar-parent.ts");
  const parent = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", entry, folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const child = Number(line.toString());
  expect(alive(child)).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 500)); // into the middle of its work
  const family = familyOf(child);
  parent.kill("SIGKILL");
  await once(parent, "close");
  await until("the child is gone", () => !family.some(alive), { timeoutMs: 5_000 });
}, 20_000);

test("a table that does not fit into the child's memory ends the child alone, in words without a value", async () => {
  const wide = "hunter2".repeat(1_000_000);
  const row = `${Array.from({ length: 12 }, () => `"${wide.slice(0, 7_000_000 / 12)}"`).join(",")}\n`;
  await pipeline(Readable.from(Array.from({ length: 80 }, () => row)), createWriteStream(path.join(folder, "in.csv")));
  const columns = Array.from({ length: 12 }, (_, i) => ({ name: `c${i}`, type: "text" as const }));
  const memoryLimitBytes = 256 * 1024 * 1024;
  let peakBytes = 0;
  const watch = (pid: number) => {
    const timer = setInterval(() => {
      const bytes = peakOf(pid);
      peakBytes = Math.max(peakBytes, bytes ?? 0);
      if (bytes === null) clearInterval(timer);
    }, 20);
  };
  const failed = (await runColumnar(
    { kind: "csvToParquet", input: "in.csv", output: "out.parquet", columns },
    {
      folder,
      memoryLimitBytes,
      spillLimitBytes: 16 * 1024 * 1024,
      timeoutMs: 60_000,
      signal: new AbortController().signal,
      onChild: watch,
    },
  ).then(
    () => expect.unreachable("it fitted"),
    (error: unknown) => error,
  )) as ColumnarFailure;
  expect(["memory", "disk"]).toContain(failed.reason);
  expect(peakBytes).toBeGreaterThan(memoryLimitBytes / 4);
  expect(peakBytes).toBeLessThan(memoryLimitBytes * 1.1);
  expect(String(failed.stack)).not.toContain("hunter2");
  expect(await readdir(folder)).toEqual(["in.csv"]);
}, 60_000);

/** The most memory that the process of the engine has had resident, be it confined or not; null when it is gone. */
function peakOf(pid: number): number | null {
  try {
    const peakBytes = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
    return Math.max(peakBytes, ...childrenOf(pid).map((child) => peakOf(child) ?? 0));
  } catch {
    return null;
  }
}

test("the engine reads and writes its folder only, and cannot be told otherwise", async () => {
  const own = path.join(folder, "own");
  await mkdir(path.join(own, "spill"), { recursive: true });
  await writeFile(path.join(folder, "other.csv"), "a\n1\n");
  await writeFile(path.join(own, "mine.csv"), "a\n1\n");
  const task: ColumnarTask = { kind: "csvToParquet", input: "mine.csv", output: "o", columns: [] };
  const engine = await Engine.open({ task, folder: own, memoryLimitBytes: MEMORY, spillLimitBytes: 1024 ** 3 });
  expect(await engine.rows(`select count(*) from read_csv(${engine.file("mine.csv")})`)).toEqual([["1"]]);
  for (const refused of [
    `select * from read_csv('${folder}/other.csv')`,
    `select * from read_csv('${own}/../other.csv')`,
    `copy (select 1) to '${folder}/written.csv'`,
    `attach '${folder}/other.db'`,
    "select * from read_csv('http://127.0.0.1/x.csv')",
    "install httpfs",
    "load '/tmp/x.duckdb_extension'",
    "set enable_external_access = true",
    "set threads = 4",
    "reset lock_configuration",
  ])
    await expect(engine.rows(refused), refused).rejects.toThrow(/Permission|Cannot change|configuration|disabled/i);
  expect((await readdir(folder)).sort()).toEqual(["other.csv", "own"]);
});

test.each(["../in.csv", "/etc/passwd", "a/b", "", ".", "spill"])("the file name %j is refused", async (input) => {
  const options = { folder, memoryLimitBytes: MEMORY, timeoutMs: 1_000, signal: new AbortController().signal };
  await expect(runColumnar({ kind: "csvToParquet", input, output: "o", columns: [] }, options)).rejects.toThrow(
    RangeError,
  );
});
