import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import pg from "pg";
import { emptyDatabase } from "./database.ts";
import { ADMIN_KEY } from "./platform.ts";
import { builtCommandLine } from "./platform-build.ts";
import { PlatformClient } from "./platform-client.ts";
import { freePort, newDataFolder } from "./platform-place.ts";
import { isAlive, killAll, processesWith, withDescendants } from "./process-table.ts";
import { until } from "./until.ts";

const START_MS = 90_000;
const SHOWN_LINES = 40;

/** One process of a deployment: its command line, and what it is told beyond what all are told. */
export interface ProcessSpec {
  args: readonly string[];
  settings?: Readonly<Record<string, string>>;
}

/** Two gateways and two workers beside each other; four subgraphs share a process, since a process may have several roles. */
const PROCESSES = {
  compute: { args: ["subgraph", "compute"] },
  others: { args: ["up"], settings: { NODUS_ROLES: "sandboxes,rl,pools,data" } },
  intake: { args: ["intake"] },
  "host-agent": { args: ["host-agent"] },
  worker: { args: ["worker"] },
  "worker-2": { args: ["worker"] },
  gateway: { args: ["gateway"] },
  "gateway-2": { args: ["gateway"] },
} as const satisfies Record<string, ProcessSpec>;
export type ProcessName = keyof typeof PROCESSES;
export const PROCESS_NAMES = Object.keys(PROCESSES) as ProcessName[];

/** A platform whose roles are processes of their own, on one database, one data folder and, if given, one Redis. */
export class Deployment {
  readonly dataDir = newDataFolder();
  readonly #children = new Map<ProcessName, ChildProcess>();
  readonly #outputs = new Map<ProcessName, string>();
  #ports = {} as Record<ProcessName, number>;
  #database: { url: string; close(): Promise<void> } | null = null;
  #pool: pg.Pool | null = null;
  readonly #settings: Readonly<Record<string, string>>;

  private constructor(settings: Readonly<Record<string, string>>) {
    this.#settings = settings;
  }

  /** Starts all processes at once. `settings` are environment variables of all of them. */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<Deployment> {
    const deployment = new Deployment(settings);
    try {
      deployment.#database = await emptyDatabase();
      for (const name of PROCESS_NAMES) deployment.#ports[name] = await freePort();
      await Promise.all(PROCESS_NAMES.map((name) => deployment.begin(name)));
      await Promise.all(PROCESS_NAMES.map((name) => deployment.ready(name)));
    } catch (error) {
      await deployment.dispose();
      throw error;
    }
    return deployment;
  }

  originOf(name: ProcessName): string {
    return `http://127.0.0.1:${this.#ports[name]}`;
  }

  /** A client of the first gateway, or of another, with the first administrator's key. */
  admin(gateway: "gateway" | "gateway-2" = "gateway"): PlatformClient {
    return new PlatformClient(this.originOf(gateway), ADMIN_KEY);
  }

  /** Starts a process that does not run; it may not be ready yet. */
  async begin(name: ProcessName): Promise<void> {
    const { args, settings = {} }: ProcessSpec = PROCESSES[name];
    const child = spawn(process.execPath, [await builtCommandLine(), ...args], {
      cwd: "/",
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env.PATH,
        PORT: String(this.#ports[name]),
        DATABASE_URL: this.#database!.url,
        NODUS_DATA_DIR: this.dataDir,
        NODUS_BOOTSTRAP_KEY: ADMIN_KEY,
        NODUS_PUBLIC_URL: this.originOf("gateway"),
        NODUS_INTAKE_URL: this.originOf("intake"),
        NODUS_SUBGRAPH_URLS: ["compute", "sandboxes", "rl", "pools", "data"]
          .map((subgraph) => `${subgraph}=${this.originOf(subgraph === "compute" ? "compute" : "others")}`)
          .join(","),
        NODUS_CPU_FALLBACK: "1",
        NODUS_LOCAL_CAPACITY: "attach",
        ...this.#settings,
        ...settings,
      },
    });
    this.#children.set(name, child);
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#outputs.set(name, (this.#outputs.get(name) ?? "") + text);
      });
  }

  /** Resolves once the process says that it is ready. */
  async ready(name: ProcessName): Promise<void> {
    const child = this.#children.get(name)!;
    await until(
      `${name} is ready`,
      async () => {
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`${name} ended with ${child.exitCode ?? child.signalCode}:\n${this.lastOutput(name)}`);
        const answer = await fetch(`${this.originOf(name)}/readyz`).catch(() => null); // does not listen yet
        return answer?.status === 200;
      },
      { timeoutMs: START_MS, everyMs: 100 },
    ).catch((error: Error) => {
      throw new Error(`${error.message}\n${this.lastOutput(name)}`);
    });
  }

  async start(name: ProcessName): Promise<void> {
    await this.begin(name);
    await this.ready(name);
  }

  /** Ends a process with a signal; resolves with its exit code once it is gone. */
  async end(name: ProcessName, signal: NodeJS.Signals = "SIGKILL"): Promise<number | null> {
    const child = this.#children.get(name)!;
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    child.kill(signal);
    return ended;
  }

  /** Sends a signal to a process that goes on: `SIGSTOP` makes it silent. */
  signal(name: ProcessName, signal: NodeJS.Signals): void {
    this.#children.get(name)!.kill(signal);
  }

  /** Rows of one statement on its database, which a test may look into. */
  async sql<T>(text: string, values: unknown[] = []): Promise<T[]> {
    this.#pool ??= new pg.Pool({ connectionString: this.#database!.url, max: 2 });
    return (await this.#pool.query(text, values)).rows as T[];
  }

  lastOutput(...names: ProcessName[]): string {
    return (names.length > 0 ? names : PROCESS_NAMES)
      .map((name) => `== ${name}\n${(this.#outputs.get(name) ?? "").split("\n").slice(-SHOWN_LINES).join("\n")}`)
      .join("\n");
  }

  /** Everything that its processes wrote. */
  get output(): string {
    return [...this.#outputs.values()].join("");
  }

  /** Ends whatever of it still runs and removes its files and its database. */
  async dispose(): Promise<void> {
    const others = PROCESS_NAMES.filter((name) => name !== "host-agent" && this.#children.has(name));
    await Promise.all(others.map((name) => this.end(name)));
    if (this.#children.has("host-agent")) await this.end("host-agent", "SIGTERM"); // takes its control groups with it
    const left = withDescendants(processesWith(this.dataDir));
    killAll(left);
    await until("everything is dead", () => !left.some(isAlive));
    await this.#pool?.end();
    await this.#database?.close();
    rmSync(this.dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}
