import { type ChildProcess, fork, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import {
  databaseUrl,
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../infra/db/embedded/embedded-postgres.ts";
import type { Drain } from "../../infra/telemetry/drain.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { killAll, processesWith, withDescendants } from "../support/process-table.ts";
import { until } from "../support/until.ts";

/** The first administrator's key of the bench's platforms. */
export const BENCH_KEY = "nk_administrator-of-the-bench";

/** A process beside the bench that answers over HTTP. */
export interface Served<Facts = object> {
  readonly origin: string;
  readonly pid: number;
  /** What it told when it was ready. */
  readonly facts: Facts;
}

/** What tells a process apart from others that run the same program. */
export interface HelperOptions {
  label?: string;
  /** Settings on top of the bench's own. */
  environment?: Record<string, string>;
}

/** Where the bench works: a folder, a durable PostgreSQL and processes, each made when it is first asked for. */
export class Bench {
  readonly folder: string;
  readonly #drain: Drain;
  /** Folder for processor profiles of the processes; null for none. */
  readonly #profiles: string | null;
  readonly #made = new Map<string, Promise<unknown>>();

  constructor(drain: Drain, profiles: string | null) {
    this.#drain = drain;
    this.#profiles = profiles;
    this.folder = mkdtempSync(path.join(tmpdir(), "nodus-bench-"));
    chmodSync(this.folder, 0o711); // guests and PostgreSQL have users of their own
    drain.onClose("what is left", () => this.#sweep());
  }

  /** PostgreSQL as the platform brings it: commits are on disk. */
  postgres(): Promise<EmbeddedPostgres> {
    return this.#once("postgres", async () => {
      const logger = createLogger({ level: "silent", role: "bench" });
      const dataDir = path.join(this.folder, "database");
      const postgres = await startEmbeddedPostgres({ dataDir, logger });
      this.#drain.onClose("PostgreSQL", async () => {
        await postgres.stop();
        rmSync(postgres.folder, { recursive: true, force: true });
      });
      return postgres;
    });
  }

  /** Address of an empty database on it. */
  database(name: string): Promise<string> {
    return this.#once(`database ${name}`, async () => {
      const { url } = await this.postgres();
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(`create database ${name}`);
      await client.end();
      return databaseUrl(url, name);
    });
  }

  /** A whole platform: what `nodus up` starts, with the caps on logs raised. */
  platform(): Promise<Served> {
    return this.#once("platform", async () => {
      const port = await freePort();
      const origin = `http://127.0.0.1:${port}`;
      const program = fileURLToPath(new URL("../../nodus.js", import.meta.url));
      const child = spawn(process.execPath, [...this.#profiling("platform"), program, "up"], {
        stdio: ["ignore", "ignore", "inherit"],
        env: {
          ...this.#environment("platform", await this.database("platform")),
          PORT: String(port),
          NODUS_BOOTSTRAP_KEY: BENCH_KEY,
          NODUS_LOG_CAPTURE_MIB: "1024",
          NODUS_LOG_COMMITTED_MIB: "1024",
        },
      });
      this.#endsWith(child, "platform");
      await until("the platform is ready", () => isReady(origin, child), { timeoutMs: 60_000, everyMs: 50 });
      return { origin, pid: child.pid!, facts: {} };
    });
  }

  /** A program of this folder as a process on a database; it tells its origin and other facts once it serves. */
  helper<Facts = object>(program: string, databaseName: string, options: HelperOptions = {}): Promise<Served<Facts>> {
    const name = [program, databaseName, ...(options.label ? [options.label] : [])].join("-");
    return this.#once(name, async () => {
      const child = fork(fileURLToPath(new URL(`./${program}.js`, import.meta.url)), [], {
        execArgv: ["--enable-source-maps", ...this.#profiling(name)],
        env: { ...this.#environment(name, await this.database(databaseName)), ...options.environment },
      });
      this.#endsWith(child, name);
      const facts = await new Promise<Facts & { origin: string }>((resolve, reject) => {
        child.once("message", (message) => resolve(message as Facts & { origin: string }));
        child.once("exit", (code) => reject(new Error(`${name} ended with ${code}`)));
      });
      return { origin: facts.origin, pid: child.pid!, facts };
    });
  }

  /** Registers what a row opened. */
  onClose(name: string, close: () => Promise<void> | void): void {
    this.#drain.onClose(name, close);
  }

  #once<T>(name: string, make: () => Promise<T>): Promise<T> {
    const made = (this.#made.get(name) as Promise<T> | undefined) ?? make();
    this.#made.set(name, made);
    return made;
  }

  #environment(name: string, url: string): Record<string, string> {
    return {
      PATH: process.env.PATH ?? "",
      NODE_ENV: "production",
      NODUS_DATA_DIR: path.join(this.folder, name),
      DATABASE_URL: url,
      NODUS_CPU_FALLBACK: "1",
      NODUS_LOG_LEVEL: "error",
    };
  }

  #profiling(name: string): string[] {
    return this.#profiles
      ? ["--cpu-prof", `--cpu-prof-dir=${this.#profiles}`, `--cpu-prof-name=${name}.cpuprofile`]
      : [];
  }

  #endsWith(child: ChildProcess, name: string): void {
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    this.#drain.onClose(name, async () => {
      child.kill("SIGTERM");
      await exited;
    });
  }

  /** The host agent outlives a platform by design; here nothing may. */
  #sweep(): void {
    killAll(withDescendants(processesWith(this.folder)));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function isReady(origin: string, child: ChildProcess): Promise<boolean> {
  if (child.exitCode !== null) throw new Error(`the platform ended with ${child.exitCode}`);
  const answer = await fetch(`${origin}/readyz`).catch(() => null); // does not listen yet
  return answer?.status === 200;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
