import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";

/** The rows of a DuckDB query as a Parquet file. */
export async function parquetOf(query: string, options = ""): Promise<Buffer> {
  const folder = await mkdtemp(path.join(tmpdir(), "nodus-parquet-"));
  const instance = await DuckDBInstance.create(":memory:", { threads: "1", memory_limit: "300MB" });
  const connection = await instance.connect();
  try {
    const file = path.join(folder, "table.parquet");
    await connection.run("set TimeZone = 'UTC'");
    await connection.run(`copy (${query}) to '${file}' (format parquet${options})`);
    return await readFile(file);
  } finally {
    connection.closeSync();
    instance.closeSync();
    await rm(folder, { recursive: true, force: true });
  }
}
