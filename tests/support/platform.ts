import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { readPassword } from "../../infra/db/embedded/cluster.ts";
import { readPidFile } from "../../infra/db/embedded/pid-file.ts";
import { postgresFolder } from "../../infra/db/embedded/place.ts";
import { endOrphans } from "../../infra/runner/isolation/orphans.ts";
import { builtCommandLine } from "./platform-build.ts";
import { PlatformClient } from "./platform-client.ts";
import { freePort, newDataFolder } from "./platform-place.ts";
import { isAlive, kill, killAll, type Living, processesWith, withDescendants } from "./process-table.ts";
import { until } from "./until.ts";

/** The first administrator's key of every platform that tests start. */
export const ADMIN_KEY = "nk_administrator-of-the-tests";
const START_MS = 110_000;
/** How long a host agent may take to end its guests when all is over. */
const GOODBYE_MS = 5_000;
/** Lines of the platform's output that a failed test shows. */
const SHOWN_LINES = 80;

/** How a command of the command line ended. */
export interface CommandEnd {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A whole platform in processes of its own: what `nodus up` starts, on a data folder and a port that it keeps. */
export class Platform {
  readonly dataDir: string;
  readonly port: number;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #commandLine: () => Promise<string>;
  #child: ChildProcess | null = null;
  #exited: Promise<number | null> = Promise.resolve(null);
  #output = "";
  #pool: pg.Pool | null = null;

  private constructor(
    dataDir: string,
    port: number,
    settings: Readonly<Record<string, string>>,
    commandLine: () => Promise<string>,
  ) {
    this.dataDir = dataDir;
    this.port = port;
    this.#settings = settings;
    this.#commandLine = commandLine;
  }

  /** Starts a platform on a fresh data folder, or on a given one. `settings` are environment variables. */
  static async start(
    settings: Readonly<Record<string, string>> = {},
    { dataDir = newDataFolder(), commandLine = builtCommandLine } = {},
  ): Promise<Platform> {
    const platform = new Platform(dataDir, await freePort(), settings, commandLine);
    try {
      await platform.start();
    } catch (error) {
      await platform.dispose();
      throw error;
    }
    return platform;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** A client with the first administrator's key. */
  get admin(): PlatformClient {
    return new PlatformClient(this.origin, ADMIN_KEY);
  }

  /** Everything that its processes wrote to stdout and stderr, over all of its lives. */
  get output(): string {
    return this.#output;
  }

  /** Starts it again on the same data folder and port; resolves once it is ready. */
  async start(): Promise<void> {
    const child = await this.#spawn("up");
    this.#child = child;
    this.#exited = new Promise((resolve) => child.once("exit", resolve));
    await until("the platform is ready", () => this.#isReady(child), { timeoutMs: START_MS, everyMs: 100 }).catch(
      (error: Error) => {
        throw new Error(`${error.message}\n${this.lastOutput()}`, { cause: error });
      },
    );
  }

  /** SIGTERM; resolves with the exit code once the process has ended by itself. */
  async stop(): Promise<number | null> {
    await this.#closePool();
    this.#child?.kill("SIGTERM");
    return this.#exited;
  }

  /** `kill -9` of the platform's process alone: its database and its host agent live on. */
  async kill(): Promise<void> {
    await this.#closePool();
    this.#child?.kill("SIGKILL");
    await this.#exited;
  }

  /** `kill -9` of everything, as when the machine loses power: platform, PostgreSQL, host agent and guests. */
  async killEverything(): Promise<void> {
    await this.#closePool();
    const processes = this.processes();
    killAll(processes);
    await until("everything is dead", () => !processes.some(isAlive));
    await this.#exited;
  }

  /** The process that holds this machine's guests. */
  hostAgent(): Living {
    const agent = this.processes().find((process) => this.#isHostAgent(process));
    if (!agent) throw new Error("there is no host agent");
    return agent;
  }

  /** `kill -9` of the host agent, whose guests die with it. */
  async killHostAgent(): Promise<void> {
    const agent = this.hostAgent();
    killAll([agent]);
    await until("the host agent is dead", () => !isAlive(agent));
  }

  /** `kill -9` of the database server; resolves once the platform has started another one. */
  async killPostgres(): Promise<void> {
    const killed = this.#server().pid;
    kill(killed, "SIGKILL");
    await this.#closePool();
    await until("PostgreSQL is back", () => {
      const server = readPidFile(postgresFolder(this.dataDir));
      return server?.ready && server.pid !== killed;
    });
  }

  /** All of its processes, guests included. */
  processes(): Living[] {
    return withDescendants(processesWith(this.dataDir));
  }

  /** Runs a command of the command line beside it, to its end. */
  async command(args: readonly string[]): Promise<CommandEnd> {
    return (await this.begin(args)).ended;
  }

  /** Starts a command of the command line beside it. */
  async begin(args: readonly string[]): Promise<{ stdout(): string; stderr(): string; ended: Promise<CommandEnd> }> {
    const child = await this.#spawn(...args);
    let stdout = "";
    let stderr = "";
    child.stdout?.on("data", (text: string) => {
      stdout += text;
    });
    child.stderr?.on("data", (text: string) => {
      stderr += text;
    });
    const ended = new Promise<CommandEnd>((resolve) =>
      child.once("close", (code) => resolve({ code, stdout, stderr })),
    );
    return { stdout: () => stdout, stderr: () => stderr, ended };
  }

  /** Rows of one statement on its database, which a test may look into. */
  async sql<T>(text: string, values: unknown[] = []): Promise<T[]> {
    this.#pool ??= openPool(this.databaseUrl);
    return (await this.#pool.query(text, values)).rows as T[];
  }

  get databaseUrl(): string {
    const folder = postgresFolder(this.dataDir);
    return `postgres://nodus:${readPassword(folder)}@127.0.0.1:${this.#server().port}/nodus`;
  }

  /** Ends whatever of it still runs and removes its files. */
  async dispose(): Promise<void> {
    await this.#dismissHostAgent();
    await this.killEverything();
    await endOrphans(); // what the next life would end
    rmSync(postgresFolder(this.dataDir), { recursive: true, force: true });
    rmSync(this.dataDir, { recursive: true, force: true, maxRetries: 5 });
  }

  /** The end of its output, for a test that failed. */
  lastOutput(): string {
    return this.#output.split("\n").slice(-SHOWN_LINES).join("\n");
  }

  /** A host agent that may say goodbye takes its control groups with it. */
  async #dismissHostAgent(): Promise<void> {
    this.#child?.kill("SIGKILL"); // or it starts another one
    await this.#exited;
    const agents = this.processes().filter((process) => this.#isHostAgent(process));
    for (const { pid } of agents) kill(pid, "SIGTERM");
    const goodbye = performance.now() + GOODBYE_MS;
    await until("the host agent is gone", () => !agents.some(isAlive) || performance.now() > goodbye);
  }

  #isHostAgent({ commandLine }: Living): boolean {
    return commandLine.includes(`--folder ${this.dataDir}`);
  }

  #server() {
    const server = readPidFile(postgresFolder(this.dataDir));
    if (!server) throw new Error("PostgreSQL does not run");
    return server;
  }

  async #spawn(...args: string[]): Promise<ChildProcess> {
    const child = spawn(process.execPath, [await this.#commandLine(), ...args], {
      cwd: "/",
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env.PATH,
        PORT: String(this.port),
        NODUS_DATA_DIR: this.dataDir,
        NODUS_BOOTSTRAP_KEY: ADMIN_KEY,
        NODUS_BASE_URL: this.origin,
        NODUS_API_KEY: ADMIN_KEY,
        ...this.#settings,
      },
    });
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#output += text;
      });
    return child;
  }

  async #isReady(child: ChildProcess): Promise<boolean> {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`the platform ended with ${child.exitCode ?? child.signalCode}`);
    const answer = await fetch(`${this.origin}/readyz`).catch(() => null); // does not listen yet
    return answer?.status === 200;
  }

  async #closePool(): Promise<void> {
    await this.#pool?.end().catch(() => {}); // its server may be gone
    this.#pool = null;
  }
}

/**
 * One platform for all tests of a file. A test that fails shows the end of the platform's output; whatever happens,
 * no process and no file of it stays.
 */
export function sharedPlatform(settings: Readonly<Record<string, string>> = {}): () => Platform {
  let platform: Platform | null = null;
  beforeAll(async () => {
    platform = await Platform.start(settings);
  }, 120_000);
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => console.error(platform?.lastOutput()));
  });
  afterAll(() => platform?.dispose(), 60_000);
  return () => platform!;
}

function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 2, connectionTimeoutMillis: 30_000 });
  pool.on("error", () => {}); // the statement that needs the connection says so
  return pool;
}
