import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import pg from "pg";
import { endOrphans } from "../../infra/runner/isolation/orphans.ts";
import { emptyDatabase } from "./database.ts";
import { ADMIN_KEY } from "./platform.ts";
import { builtCommandLine } from "./platform-build.ts";
import { PlatformClient } from "./platform-client.ts";
import { freePort, newDataFolder } from "./platform-place.ts";
import { isAlive, killAll, type Living, processesWith, withDescendants } from "./process-table.ts";
import { until } from "./until.ts";

const START_MS = 180_000;
const SHOWN_LINES = 40;

/** One process of a deployment: its command line, and what it is told beyond what all are told. */
export interface ProcessSpec {
  readonly args: readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
}

/** Which processes there are, and what all of them are told. */
export interface Layout<Name extends string> {
  readonly processes: Readonly<Record<Name, ProcessSpec>>;
  /** `originOf` tells where each process will listen. */
  environment(originOf: (name: Name) => string): Readonly<Record<string, string>>;
}

const SUBGRAPH_HOMES = {
  compute: "compute",
  sandboxes: "others",
  rl: "others",
  pools: "others",
  data: "others",
} as const;

/** Two gateways and two workers beside each other; four subgraphs share a process, since a process may have several roles. */
const IN_PAIRS = {
  processes: {
    compute: { args: ["subgraph", "compute"] },
    others: { args: ["up"], settings: { NODUS_ROLES: "sandboxes,rl,pools,data" } },
    intake: { args: ["intake"] },
    "host-agent": { args: ["host-agent"] },
    worker: { args: ["worker"] },
    "worker-2": { args: ["worker"] },
    gateway: { args: ["gateway"] },
    "gateway-2": { args: ["gateway"] },
  },
  environment: (originOf) => ({
    NODUS_PUBLIC_URL: originOf("gateway"),
    NODUS_INTAKE_URL: originOf("intake"),
    NODUS_SUBGRAPH_URLS: Object.entries(SUBGRAPH_HOMES)
      .map(([subgraph, process]) => `${subgraph}=${originOf(process)}`)
      .join(","),
    NODUS_CPU_FALLBACK: "1",
    NODUS_LOCAL_CAPACITY: "attach",
  }),
} satisfies Layout<"compute" | "others" | "intake" | "host-agent" | "worker" | "worker-2" | "gateway" | "gateway-2">;

export type ProcessName = keyof typeof IN_PAIRS.processes;
export const PROCESS_NAMES = Object.keys(IN_PAIRS.processes) as ProcessName[];

/** A platform whose roles are processes of their own, on one database, one data folder and, if given, one Redis. */
export class Deployment<Name extends string = ProcessName> {
  readonly dataDir = newDataFolder();
  readonly names: readonly Name[];
  readonly #children = new Map<Name, ChildProcess>();
  readonly #outputs = new Map<Name, string>();
  readonly #ports = {} as Record<Name, number>;
  readonly #layout: Layout<Name>;
  #database: { url: string; close(): Promise<void> } | null = null;
  #pool: pg.Pool | null = null;
  readonly #settings: Readonly<Record<string, string>>;

  private constructor(layout: Layout<Name>, settings: Readonly<Record<string, string>>) {
    this.#layout = layout;
    this.#settings = settings;
    this.names = Object.keys(layout.processes) as Name[];
  }

  /** Starts two gateways, two workers and one of everything else. `settings` are environment variables of all of them. */
  static start(settings: Readonly<Record<string, string>> = {}): Promise<Deployment> {
    return Deployment.laidOut(IN_PAIRS, settings);
  }

  /** Starts all processes of a layout at once. */
  static async laidOut<Name extends string>(
    layout: Layout<Name>,
    settings: Readonly<Record<string, string>>,
  ): Promise<Deployment<Name>> {
    const deployment = new Deployment(layout, settings);
    try {
      deployment.#database = await emptyDatabase();
      for (const name of deployment.names) deployment.#ports[name] = await freePort();
      await Promise.all(deployment.names.map((name) => deployment.begin(name)));
      await Promise.all(deployment.names.map((name) => deployment.ready(name)));
    } catch (error) {
      await deployment.dispose();
      throw error;
    }
    return deployment;
  }

  originOf(name: Name): string {
    return `http://127.0.0.1:${this.#ports[name]}`;
  }

  /** A client of the gateway, or of another one, with the first administrator's key. */
  admin(gateway = "gateway" as Name): PlatformClient {
    return new PlatformClient(this.originOf(gateway), ADMIN_KEY);
  }

  /** What all of its processes are told. */
  environment(): Record<string, string> {
    return {
      ...this.#layout.environment((name) => this.originOf(name)),
      PATH: process.env.PATH ?? "",
      DATABASE_URL: this.#database!.url,
      NODUS_DATA_DIR: this.dataDir,
      NODUS_BOOTSTRAP_KEY: ADMIN_KEY,
      ...this.#settings,
    };
  }

  /** The key that its processes share by their data folder, as `NODUS_MASTER_KEY` takes it. */
  masterKey(): string {
    return readFileSync(path.join(this.dataDir, "master.key"), "utf8").trim();
  }

  /** The processes that hold guests. */
  hostAgents(): Living[] {
    return processesWith(this.dataDir).filter(({ commandLine }) => commandLine.includes(`--folder ${this.dataDir}`));
  }

  /** Starts a process that does not run; it may not be ready yet. */
  async begin(name: Name): Promise<void> {
    const { args, settings = {} } = this.#layout.processes[name];
    const child = spawn(process.execPath, [await builtCommandLine(), ...args], {
      cwd: "/",
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...this.environment(), ...settings, PORT: String(this.#ports[name]) },
    });
    this.#children.set(name, child);
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#outputs.set(name, (this.#outputs.get(name) ?? "") + text);
      });
  }

  /** Resolves once the process says that it is ready. */
  async ready(name: Name): Promise<void> {
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

  async start(name: Name): Promise<void> {
    await this.begin(name);
    await this.ready(name);
  }

  /** Ends a process with a signal; resolves with its exit code once it is gone. */
  async end(name: Name, signal: NodeJS.Signals = "SIGKILL"): Promise<number | null> {
    const child = this.#children.get(name)!;
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    child.kill(signal);
    return ended;
  }

  /** Sends a signal to a process that goes on: `SIGSTOP` makes it silent. */
  signal(name: Name, signal: NodeJS.Signals): void {
    this.#children.get(name)!.kill(signal);
  }

  /** Rows of one statement on its database, which a test may look into. */
  async sql<T>(text: string, values: unknown[] = []): Promise<T[]> {
    this.#pool ??= openPool(this.#database!.url);
    return (await this.#pool.query(text, values)).rows as T[];
  }

  lastOutput(...names: Name[]): string {
    return (names.length > 0 ? names : this.names)
      .map((name) => `== ${name}\n${(this.#outputs.get(name) ?? "").split("\n").slice(-SHOWN_LINES).join("\n")}`)
      .join("\n");
  }

  /** Everything that its processes wrote. */
  get output(): string {
    return [...this.#outputs.values()].join("");
  }

  /** Ends whatever of it still runs and removes its files and its database. */
  async dispose(): Promise<void> {
    const isHost = (name: Name) => this.#layout.processes[name].args[0] === "host-agent";
    const begun = [...this.#children.keys()];
    await Promise.all(begun.filter((name) => !isHost(name)).map((name) => this.end(name)));
    // Told to end, it takes the control groups of its guests with it.
    await Promise.all(begun.filter(isHost).map((name) => this.end(name, "SIGTERM")));
    const left = withDescendants(processesWith(this.dataDir));
    killAll(left);
    await until("everything is dead", () => !left.some(isAlive));
    await endOrphans(); // what the next life would end
    await this.#pool?.end();
    await this.#database?.close();
    rmSync(this.dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 2, connectionTimeoutMillis: 30_000 });
  pool.on("error", () => {}); // the statement that needs the connection says so
  return pool;
}
