import path from "node:path";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { type ColumnarOrder, SPILL_FOLDER } from "./messages.ts";
import { literal } from "./sql.ts";

/** What a child takes beside its engine's tables: the runtime, the engine's code, buffers that it does not count. */
const RUNTIME_BYTES = 144 * 1024 * 1024;

/** DuckDB in memory, with one thread, that can touch one folder of the machine and cannot be told otherwise. */
export class Engine {
  readonly #connection: DuckDBConnection;
  readonly #folder: string;

  private constructor(connection: DuckDBConnection, folder: string) {
    this.#connection = connection;
    this.#folder = folder;
  }

  static async open({ folder, memoryLimitBytes, spillLimitBytes }: ColumnarOrder): Promise<Engine> {
    const instance = await DuckDBInstance.create(":memory:", {
      threads: "1",
      memory_limit: `${memoryLimitBytes - RUNTIME_BYTES}B`,
      temp_directory: path.join(folder, SPILL_FOLDER),
      max_temp_directory_size: `${spillLimitBytes}B`,
      autoinstall_known_extensions: "false",
      autoload_known_extensions: "false",
      errors_as_json: "false",
    });
    const connection = await instance.connect();
    await connection.run("set TimeZone = 'UTC'");
    await connection.run(`set allowed_directories = [${literal(`${folder}/`)}]`);
    await connection.run("set enable_external_access = false");
    await connection.run("set lock_configuration = true");
    return new Engine(connection, folder);
  }

  /** The absolute path of a file of the folder. */
  pathOf(file: string): string {
    return path.join(this.#folder, file);
  }

  /** The same as an SQL literal. */
  file(file: string): string {
    return literal(this.pathOf(file));
  }

  /** Few rows, as arrays of texts and nulls. */
  async rows(sql: string): Promise<unknown[][]> {
    return (await this.#connection.runAndReadAll(sql)).getRowsJson() as unknown[][];
  }

  /** Runs COPY … TO and says how many rows it wrote. */
  async copy(sql: string): Promise<number> {
    const [row] = await this.rows(sql);
    return Number(row?.[0]);
  }
}
