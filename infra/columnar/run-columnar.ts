import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { constants } from "node:os";
import path from "node:path";
import { type Confined, INSIDE, startConfined } from "./confined-child.ts";
import { type Confinement, findConfinement } from "./confinement.ts";
import { type ColumnarOrder, type ColumnarReport, SPILL_FOLDER } from "./messages.ts";
import { requireFileName, requirePlainFile } from "./plain-file.ts";
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
  /** The strongest that works on this machine unless told. */
  readonly confinement?: Confinement;
  /** Told the process id of the child, or of what confines it, for figures and tests. */
  readonly onChild?: (pid: number) => void;
}

/** What the runtime of a child takes before its engine has done anything, and enough for an engine to work. */
const COLUMNAR_MEMORY_MIN_BYTES = 256 * 1024 * 1024;
const SPILL_LIMIT_BYTES = 4 * 1024 ** 3;
/** The child's own JavaScript; the tables are in the engine's memory. */
const HEAP_MEGABYTES = 96;
const TRIAL_MS = 60_000;

/**
 * Runs one task in a process of its own, which ends with it: a damaged file or a table that is too large can take
 * nothing else down. The child has no environment and no network use, reads and writes `folder` only, and dies when it
 * takes too long, when the signal aborts, when it outgrows its memory, and when this process dies. Files come from people
 * whom nobody knows, so bubblewrap holds the child to that wherever it works, whatever a file makes of the engine.
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
  for (const file of outputOf(task)) await rm(path.join(folder, file), { force: true }); // another user's, maybe
  await mkdir(path.join(folder, SPILL_FOLDER), { recursive: true, mode: 0o700 });
  let succeeded = false;
  try {
    const order = { task, folder, memoryLimitBytes, spillLimitBytes: options.spillLimitBytes ?? SPILL_LIMIT_BYTES };
    const report = await reportOf(order, options.confinement ?? (await columnarConfinement()), options);
    if (!report.ok) throw new ColumnarFailure(report.failure);
    for (const file of outputOf(task)) await requirePlainFile(path.join(folder, file));
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

let found: Promise<Confinement> | undefined;
const told = Promise.withResolvers<Confinement>();

/** How this process's children are confined, once it has started one. */
export const confinementFound: Promise<Confinement> = told.promise;

/** Tried out once: what a machine allows does not change while a process runs. */
function columnarConfinement(): Promise<Confinement> {
  found ??= findConfinement(async (confinement, folder) => {
    const limits = { rows: 1, columns: 1, recordBytes: 100, rowGroupBytes: 100 };
    const task = { kind: "describe", input: "trial.csv", format: "csv", limits } as const;
    const signal = new AbortController().signal;
    const options = { folder, memoryLimitBytes: COLUMNAR_MEMORY_MIN_BYTES, timeoutMs: TRIAL_MS, signal };
    return runColumnar(task, { ...options, confinement }).then(
      () => null,
      (error: Error) => `a confined trial failed: ${error.message}`,
    );
  }).then((confinement) => {
    told.resolve(confinement);
    return confinement;
  });
  return found;
}

/** What the child said, once it is gone. */
async function reportOf(
  order: ColumnarOrder,
  confinement: Confinement,
  { timeoutMs, signal, onChild }: ColumnarOptions,
): Promise<ColumnarReport> {
  const confined = confinement.level !== "none";
  const child = confined ? await startConfinedTask(order, confinement) : startChild();
  if (child.pid !== undefined) onChild?.(child.pid);
  const { promise, resolve } = Promise.withResolvers<ColumnarReport>();
  let report: ColumnarReport | null = null;
  const end = (reason: "timeout" | "cancelled") => {
    report = { ok: false, failure: { reason } };
    child.kill("SIGKILL");
  };
  const cancel = () => end("cancelled");
  const timer = setTimeout(() => end("timeout"), timeoutMs);
  signal.addEventListener("abort", cancel, { once: true });
  const over = (reason: "crashed" | "lost") => {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
    resolve(report ?? { ok: false, failure: { reason } });
  };
  child.on("message", (said) => {
    report = said as ColumnarReport;
    // An answer that came in time counts, whatever its sender does from here on.
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
    child.kill("SIGKILL");
  });
  child.once("error", () => over("lost")); // it could not be started
  // Its channel is closed then too, so nothing of it is left.
  child.once("close", (code, killer) => over(isFault(code, killer) ? "crashed" : "lost"));
  child.send({ ...order, folder: confined ? INSIDE.folder : order.folder }, () => {}); // `close` tells of one that is gone
  if (signal.aborted) cancel();
  return promise;
}

const FAULTS: readonly NodeJS.Signals[] = ["SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP"];

/** Whether a process ended by what it did itself. What confines one ends with 128 and the signal's number. */
function isFault(code: number | null, killer: NodeJS.Signals | null): boolean {
  return FAULTS.some((fault) => killer === fault || code === 128 + constants.signals[fault]);
}

const RUNTIME_OPTIONS = [`--max-old-space-size=${HEAP_MEGABYTES}`, "--disable-warning=ExperimentalWarning"];
const ENTRY = import.meta.url.endsWith(".ts") ? "child.ts" : "child.js";

function startConfinedTask({ folder, memoryLimitBytes, task }: ColumnarOrder, confined: Confined) {
  const nodeArguments = [...RUNTIME_OPTIONS, `${INSIDE.code}/${ENTRY}`];
  return startConfined({ confined, folder, memoryLimitBytes, nodeArguments }, [SPILL_FOLDER, task.input]);
}

function startChild(): ChildProcess {
  return spawn(process.execPath, [...RUNTIME_OPTIONS, path.join(import.meta.dirname, ENTRY)], {
    cwd: "/",
    // What the engine writes there may quote the table.
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    env: { TZ: "UTC" },
    serialization: "json",
  });
}
