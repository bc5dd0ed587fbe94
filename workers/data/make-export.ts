import { createReadStream } from "node:fs";
import { mkdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import { runColumnar } from "../../infra/columnar/run-columnar.ts";
import { ColumnarFailure } from "../../infra/columnar/task.ts";
import { triedTwice } from "../../infra/columnar/tried-twice.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { type ObjectStore, ObjectTooLarge, type StoredObject } from "../../infra/objects/object-store.ts";
import { type ClaimBytes, NotClaimed, toldApart } from "../../subgraphs/data/asset/store-content.ts";
import type { DatabaseDeps } from "../../subgraphs/data/connection/open-database.ts";
import { parquetType } from "../../subgraphs/data/export/column-types.ts";
import { copyQuery, type QueryResult, queryFailure } from "../../subgraphs/data/export/copy-query.ts";
import type { ExportClaim } from "../../subgraphs/data/export/export-claim.ts";
import { ExportFailure, exportTimedOut } from "../../subgraphs/data/export/export-failure.ts";
import { QueryClient } from "../../subgraphs/data/export/query-client.ts";
import type { RecordCounter } from "../../subgraphs/data/export/record-counter.ts";

export interface MakeExportDeps extends DatabaseDeps {
  /** The store of assets alone. */
  objects: ObjectStore;
  /** A folder of this process; whatever a crash left there may be removed at start. */
  scratchDir: string;
}

/** What an export came to. */
export interface MadeExport extends StoredObject {
  rows: number;
  /** What the database sent. */
  importedBytes: number;
}

/**
 * Runs an export's query and stores its result; nothing of it is left on this machine's disk then, nor when it fails.
 * Throws `ExportFailure`, or the signal's reason once that has aborted.
 */
export async function makeExport(
  deps: MakeExportDeps,
  claim: ExportClaim,
  { counter, signal, claimed }: { counter: RecordCounter; signal: AbortSignal; claimed: ClaimBytes },
): Promise<MadeExport> {
  const folder = path.join(deps.scratchDir, `${claim.exportId}-${claim.fence}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    const result = await readQuery(deps, claim, { folder, counter, signal });
    const file = claim.format === "csv" ? RESULT : await writeParquet(deps, claim, { folder, result, signal });
    const stored = await store(deps.objects, path.join(folder, file), claimed, signal);
    return { ...stored, rows: result.rows, importedBytes: result.bytes };
  } catch (error) {
    // What ended it says why, whatever it looked like to what was cut off.
    signal.throwIfAborted();
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const RESULT = "result.csv";
const PARQUET = "data.parquet";

interface Reading {
  folder: string;
  counter: RecordCounter;
  signal: AbortSignal;
}

async function readQuery(deps: MakeExportDeps, claim: ExportClaim, reading: Reading): Promise<QueryResult> {
  const { folder, counter, signal } = reading;
  const { sql, format } = claim;
  const query = await QueryClient.open(deps, claim, signal).catch((error: unknown) => {
    throw queryFailure(error);
  });
  let cancelled: Promise<void> | null = null;
  const cancel = () => {
    cancelled ??= query.cancel();
  };
  signal.addEventListener("abort", cancel, { once: true });
  try {
    signal.throwIfAborted();
    const file = path.join(folder, RESULT);
    const { clock } = deps;
    return await copyQuery(query.client, { sql, format, file, counter, clock, timeoutMs: leftMs(deps, claim), signal });
  } catch (error) {
    if (error instanceof ExportFailure) cancel(); // the query goes on, for all that the database knows
    throw queryFailure(error);
  } finally {
    signal.removeEventListener("abort", cancel);
    await (cancelled ?? query.close());
  }
}

/** Decoded size that a row group is to have: it is whole in memory while it is written, and while it is read. */
const ROW_GROUP_BYTES = 32 * 1024 * 1024;
const ROW_GROUP_ROWS = 122_880;

async function writeParquet(
  deps: MakeExportDeps,
  claim: ExportClaim,
  { folder, result, signal }: { folder: string; result: QueryResult; signal: AbortSignal },
): Promise<string> {
  const rowBytes = Math.max(result.bytes / Math.max(result.rows, 1), 1);
  const task = {
    kind: "csvToParquet",
    input: RESULT,
    output: PARQUET,
    columns: result.columns.map(({ name, typeId }) => ({ name, type: parquetType(typeId) })),
    rowGroupRows: Math.max(1, Math.min(ROW_GROUP_ROWS, Math.floor(ROW_GROUP_BYTES / rowBytes))),
  } as const;
  const memoryLimitBytes = LIMITS.columnarMemoryBytes;
  try {
    await triedTwice(() => runColumnar(task, { folder, memoryLimitBytes, timeoutMs: leftMs(deps, claim), signal }));
  } catch (error) {
    throw error instanceof ColumnarFailure ? parquetFailure(error) : error;
  }
  await rm(path.join(folder, RESULT));
  return PARQUET;
}

function parquetFailure(failure: ColumnarFailure): ExportFailure {
  const { column } = failure.detail;
  switch (failure.reason) {
    case "unrepresentable":
      return new ExportFailure(
        "query_failed",
        `Column ${JSON.stringify(column)} has a timestamp that Parquet cannot hold, such as infinity. Cast it to text.`,
        failure,
      );
    case "limit":
      return new ExportFailure(
        "byte_limit",
        "A row is larger than a Parquet export takes. Export fewer or shorter columns, or CSV.",
        failure,
      );
    case "timeout":
      return exportTimedOut(failure);
    case "memory":
      return new ExportFailure(
        "byte_limit",
        "The rows are too large for a Parquet export. Export fewer or shorter columns, or CSV.",
        failure,
      );
    case "unreadable":
      return new ExportFailure("query_failed", UNREADABLE, failure);
    default:
      return new ExportFailure("internal", "The Parquet file could not be written.", failure);
  }
}

/** A PostgreSQL that says what is so sends no such thing, but for text of a database without an encoding. */
const UNREADABLE =
  "The database sent rows that are not of the columns that it described, or text that is not UTF-8. Correct the columns, or export CSV.";

async function store(
  objects: ObjectStore,
  file: string,
  claimed: ClaimBytes,
  signal: AbortSignal,
): Promise<StoredObject> {
  const { size } = await stat(file);
  try {
    return await objects.put(createReadStream(file, { signal }), { maxBytes: size, claim: toldApart(claimed) });
  } catch (error) {
    if (error instanceof NotClaimed) throw error.cause;
    if (error instanceof ObjectTooLarge) throw error; // it grew while nobody had it: a fault
    throw new ExportFailure("internal", "The object store could not take the file.", error);
  }
}

function leftMs({ clock }: MakeExportDeps, claim: ExportClaim): number {
  return Math.max(claim.deadlineAt.getTime() - clock.now().getTime(), 1);
}
