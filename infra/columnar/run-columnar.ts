import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { type ColumnarOrder, type ColumnarReport, SPILL_FOLDER } from "./messages.ts";
import { type ColumnarAnswer, ColumnarFailure, type ColumnarTask } from "./task.ts";

export interface ColumnarOptions {
  /** Absolute; holds the task's files and nothing that the engine must not read. */
  readonly folder: string;
  /** For the whole child; at least `COLUMNAR_MEMORY_MIN_BYTES`. */
  readonly memoryLimitBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Most that the engine may spill into the folder; 4 GiB unless told. */
  readonly spillLimitBytes?: number;
  /** Told the child's process id, for figures and tests. */
  readonly onChild?: (pid: number) => void;
}

/** What the runtime of a child takes before its engine has done anything, and enough for an engine to work. */
export const COLUMNAR_MEMORY_MIN_BYTES = 256 * 1024 * 1024;
const SPILL_LIMIT_BYTES = 4 * 1024 ** 3;
/** The child's own JavaScript; the tables are in the engine's memory. */
const HEAP_MEGABYTES = 96;

/**
 * Runs one task in a process of its own, which ends with it: a damaged file or a table that is too large can take
 * nothing else down. The child has no environment and no network use, reads and writes `folder` only, and dies when it
 * takes too long, when the signal aborts, when it outgrows its memory, and when this process dies.
 *
 * @throws ColumnarFailure always when the task did not succeed; its output is removed then
 */
export async function runColumnar<T extends ColumnarTask>(
  task: T,
  options: ColumnarOptions,
): Promise<ColumnarAnswer<T>> {
  const { folder, memoryLimitBytes, signal } = options;
  for (const file of [task.input, ...outputOf(task)]) requireFileName(file);
  if (memoryLimitBytes < COLUMNAR_MEMORY_MIN_BYTES)
    throw new RangeError(`a columnar task needs ${COLUMNAR_MEMORY_MIN_BYTES} bytes of memory`);
  if (signal.aborted) throw new ColumnarFailure({ reason: "cancelled" });
  await mkdir(path.join(folder, SPILL_FOLDER), { recursive: true, mode: 0o700 });
  let succeeded = false;
  try {
    const order = { task, folder, memoryLimitBytes, spillLimitBytes: options.spillLimitBytes ?? SPILL_LIMIT_BYTES };
    const report = await reportOf(order, options);
    if (!report.ok) throw new ColumnarFailure(report.failure);
    succeeded = true;
    return report.answer as ColumnarAnswer<T>;
  } finally {
    await rm(path.join(folder, SPILL_FOLDER), { recursive: true, force: true });
    if (!succeeded) for (const file of outputOf(task)) await rm(path.join(folder, file), { force: true });
  }
}

function outputOf(task: ColumnarTask): string[] {
  return task.kind === "describe" ? [] : [task.output];
}

function requireFileName(file: string): void {
  if (file !== path.basename(file) || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(file) || file === SPILL_FOLDER)
    throw new RangeError("a columnar task names plain files of its folder");
}

/** What the child said, once it is gone. */
function reportOf(order: ColumnarOrder, { timeoutMs, signal, onChild }: ColumnarOptions): Promise<ColumnarReport> {
  const child = startChild();
  if (child.pid !== undefined) onChild?.(child.pid);
  const { promise, resolve } = Promise.withResolvers<ColumnarReport>();
  let report: ColumnarReport = { ok: false, failure: { reason: "crashed" } };
  const end = (reason: "timeout" | "cancelled") => {
    report = { ok: false, failure: { reason } };
    child.kill("SIGKILL");
  };
  const cancel = () => end("cancelled");
  const timer = setTimeout(() => end("timeout"), timeoutMs);
  signal.addEventListener("abort", cancel, { once: true });
  const over = () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
    resolve(report);
  };
  child.on("message", (said) => {
    report = said as ColumnarReport;
    // An answer that came in time counts, whatever its sender does from here on.
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
    child.kill("SIGKILL");
  });
  child.once("error", over); // it could not be started: `crashed`
  child.once("close", over);
  child.send(order, () => {}); // one that is gone already is told by `close`
  return promise;
}

function startChild(): ChildProcess {
  const entry = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./child.ts" : "./child.js", import.meta.url));
  const options = [`--max-old-space-size=${HEAP_MEGABYTES}`, "--disable-warning=ExperimentalWarning"];
  return spawn(process.execPath, [...options, entry], {
    cwd: "/",
    // What the engine writes there may quote the table.
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    env: { TZ: "UTC" },
    serialization: "json",
  });
}
