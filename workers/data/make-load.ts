import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { runColumnar } from "../../infra/columnar/run-columnar.ts";
import type { Rewrite, TableDescription, TableFormat, TableLimits } from "../../infra/columnar/task.ts";
import { triedTwice } from "../../infra/columnar/tried-twice.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import type { RunResultsPort } from "../../subgraphs/compute/published.ts";
import type { DatabaseDeps } from "../../subgraphs/data/connection/open-database.ts";
import type { LoadedRows } from "../../subgraphs/data/load/load.commands.ts";
import { isSuperseded, type LoadClaim } from "../../subgraphs/data/load/load-claim.ts";
import { LoadFailure } from "../../subgraphs/data/load/load-failure.ts";
import { ownValues, replaceRows } from "../../subgraphs/data/load/target/replace-rows.ts";
import { withTarget } from "../../subgraphs/data/load/target/target-client.ts";
import { type TargetColumn, targetColumns } from "../../subgraphs/data/load/target/target-columns.ts";
import { loadFolder } from "./abandoned-loads.ts";

export interface MakeLoadDeps extends DatabaseDeps {
  /** The store of results. */
  objects: Pick<ObjectStore, "open">;
  results: RunResultsPort;
  /** A folder of this machine; whatever a crash left there may be removed. */
  scratchDir: string;
  /** Most that one file may be and have; the deployment's limits unless told. */
  limits?: LoadLimits;
  /** Told the process id of each process that works on a file. */
  onChild?: (pid: number) => void;
}

export interface LoadLimits extends TableLimits {
  bytes: number;
}

const LOAD_LIMITS: LoadLimits = {
  bytes: LIMITS.loadBytes,
  rows: LIMITS.loadRows,
  columns: LIMITS.loadColumns,
  recordBytes: LIMITS.loadRecordBytes,
  rowGroupBytes: LIMITS.loadRowGroupBytes,
};

/** What a file is, by the ending of its path. */
const FORMATS: Readonly<Record<string, TableFormat>> = {
  ".csv": "csv",
  ".jsonl": "jsonl",
  ".ndjson": "jsonl",
  ".parquet": "parquet",
};

const INPUT = "input";
const OUTPUT = "rows.csv";

/**
 * Puts an output's rows into its table: the file comes from the store onto this machine's disk, a process of its own
 * rewrites it, and the database takes it from there. Nothing of it is left on the disk then, nor when it fails. Throws
 * `LoadFailure`, or whatever says why, or the signal's reason once that has aborted.
 */
export async function makeLoad(deps: MakeLoadDeps, claim: LoadClaim, signal: AbortSignal): Promise<LoadedRows> {
  const format = formatOf(claim);
  const limits = deps.limits ?? LOAD_LIMITS;
  if (claim.bytes > limits.bytes) throw new LoadFailure("size_limit", `The file has more than ${limits.bytes} bytes.`);
  if (await isSuperseded(deps.db, claim)) throw new LoadFailure("superseded", "A later generation has been loaded.");
  const folder = path.join(deps.scratchDir, loadFolder(claim));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    await fetchInput(deps, claim, { folder, signal });
    return await loadFile(deps, claim, { folder, format, limits, signal });
  } catch (error) {
    signal.throwIfAborted(); // what ended it says why, whatever it looked like to what was cut off
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function formatOf({ path: file, isTar }: LoadClaim): TableFormat {
  const format = FORMATS[path.posix.extname(file).toLowerCase()];
  if (!format || isTar) throw new LoadFailure("unsupported_file", "The output is no CSV, JSON lines or Parquet file.");
  return format;
}

async function fetchInput(
  { objects }: MakeLoadDeps,
  { sha256 }: LoadClaim,
  { folder, signal }: { folder: string; signal: AbortSignal },
): Promise<void> {
  const object = await objects.open(sha256);
  if (!object) throw new LoadFailure("internal", "The output's bytes are not in the store any more.");
  await pipeline(object.stream, createWriteStream(path.join(folder, INPUT), { mode: 0o600 }), { signal });
}

interface Loading {
  folder: string;
  format: TableFormat;
  limits: LoadLimits;
  signal: AbortSignal;
}

async function loadFile(deps: MakeLoadDeps, claim: LoadClaim, loading: Loading): Promise<LoadedRows> {
  const { folder, signal } = loading;
  const { workloadId, stageId, generation } = claim;
  const run = { workloadId, stageId, generation };
  const loadedAt = deps.clock.now();
  const { rows, columns } = await rewriteFile(deps, claim, { ...loading, constants: ownValues(run, loadedAt) });
  const facts = await deps.results.facts(deps.db, claim);
  if (!facts) throw new LoadFailure("internal", "Nothing is known of the run any more.");
  await withTarget(deps, claim, signal, (client) =>
    replaceRows(client, {
      ...{ run, table: claim.table, columns, rows, facts, loadedAt, signal },
      file: path.join(folder, OUTPUT),
      timeoutMs: leftMs(deps, claim),
    }),
  );
  return { rows, runFinal: facts.final };
}

/** The file as exact CSV with the platform's own values in every row; it is judged on the way. */
async function rewriteFile(
  deps: MakeLoadDeps,
  claim: LoadClaim,
  { folder, format, limits, signal, constants }: Loading & { constants: string[] },
): Promise<{ rows: number; columns: TargetColumn[] }> {
  const task = { kind: "rewrite", input: INPUT, format, output: OUTPUT, constants, limits } as const;
  const { rows, columns } = await triedTwice(() => rewritten(deps, claim, task, { folder, signal }));
  await rm(path.join(folder, INPUT));
  if (columns.length === 0 && rows > 0) throw new LoadFailure("unsupported_file", "The file's rows have no columns.");
  return { rows, columns: targetColumns(columns) };
}

function rewritten(
  deps: MakeLoadDeps,
  claim: LoadClaim,
  task: Rewrite,
  { folder, signal }: { folder: string; signal: AbortSignal },
): Promise<TableDescription> {
  const { onChild } = deps;
  const options = { folder, signal, memoryLimitBytes: LIMITS.columnarMemoryBytes, timeoutMs: leftMs(deps, claim) };
  return runColumnar(task, { ...options, ...(onChild ? { onChild } : {}) });
}

function leftMs({ clock }: MakeLoadDeps, claim: LoadClaim): number {
  return Math.max(claim.deadlineAt.getTime() - clock.now().getTime(), 1);
}
