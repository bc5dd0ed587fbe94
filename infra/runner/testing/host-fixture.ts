import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { HostClient } from "../host/client.ts";
import { attachToHostAgent, type LauncherSettings, startHostAgent } from "../host/launcher.ts";
import type { OrderSpec } from "../protocol.ts";
import { type DoubleOrder, IntakeDouble } from "./intake-double.ts";

let orders = 0;

export type SpecChange = Partial<Omit<OrderSpec, "limits">> & { limits?: Partial<OrderSpec["limits"]> };

/** An order that does nothing special; `change` says what a test is about. */
export function orderSpec(command: string[], change: SpecChange = {}): OrderSpec {
  const orderId = change.orderId ?? `ord_${process.pid}_${++orders}`;
  return {
    ...{ orderId, workloadId: `wl_${orders}`, stageId: "main", generation: 1, image: "python:3.11-slim", command },
    ...{ env: {}, secretEnv: [], source: null, inputs: [], outputs: null, accelerator: null },
    network: { mode: "deny", hosts: [], allowPrivate: [] },
    ...change,
    limits: {
      ...{
        cpuMillis: 100,
        memoryBytes: 512 * 2 ** 20,
        diskBytes: 2 ** 30,
        tmpBytes: 64 * 2 ** 20,
        processes: 200,
        openFiles: 1024,
      },
      ...{ logCaptureBytes: 8 * 2 ** 20, logCommittedBytes: 64 * 2 ** 20, cancelGraceMs: 1_000, outputBytes: 2 ** 30 },
      ...change.limits,
    },
  };
}

export interface FixtureOptions {
  /** Instead of a new one that guests can reach; removed at the end all the same. */
  folder?: string;
  allowUnisolated?: boolean;
  idleExitMs?: number;
  /** Path of bubblewrap; one that does not exist is a machine without it. */
  bubblewrap?: string;
  /** Runs the agent under this uid instead of the test's own; for a test that is root. */
  uid?: number;
  /** False for tests about its absence; otherwise a machine without it is told apart from a fault. */
  expectIsolation?: boolean;
}

/** A real host agent in a process of its own with a double of intake, in a folder that is removed at the end. */
export class HostFixture {
  readonly folder: string;
  readonly intake = new IntakeDouble();
  readonly #options: FixtureOptions;
  #client: HostClient | null = null;
  pid = 0;

  private constructor(options: FixtureOptions) {
    this.#options = options;
    this.folder = options.folder ?? mkdtempSync("/var/tmp/nodus-host-test-");
    // Guests of root have uids of their own and must be able to walk to it.
    if (!options.folder) chmodSync(this.folder, 0o711);
  }

  static async start(options: FixtureOptions = {}): Promise<HostFixture> {
    const fixture = new HostFixture(options);
    await fixture.intake.start();
    try {
      await fixture.attach();
    } catch (error) {
      if (fixture.pid > 0) await fixture.stop();
      throw error;
    }
    return fixture;
  }

  get client(): HostClient {
    if (!this.#client) throw new Error("not attached");
    return this.#client;
  }

  async attach(): Promise<void> {
    this.#client?.close();
    const { allowUnisolated = false, bubblewrap, uid, idleExitMs = 60_000 } = this.#options;
    const settings: LauncherSettings = {
      folder: join(this.folder, "h"),
      allowUnisolated,
      version: "test",
      idleExitMs,
    };
    if (bubblewrap) settings.bubblewrap = bubblewrap;
    if (uid !== undefined && !existsSync(settings.folder)) {
      mkdirSync(settings.folder);
      chownSync(settings.folder, uid, uid);
      startHostAgent(settings, [
        "setpriv",
        `--reuid=${uid}`,
        `--regid=${uid}`,
        "--clear-groups",
        "--bounding-set=-all",
        "--no-new-privs",
      ]);
      await until(() => existsSync(join(settings.folder, "host.sock")), "the host agent of another user listens");
    }
    this.#client = await attachToHostAgent(settings);
    const hello = await this.#client.ask({ op: "hello", intakeUrl: this.intake.url });
    this.pid = hello.pid;
    if (hello.isolation.level !== "bubblewrap" && this.#options.expectIsolation !== false) {
      throw new Error(
        `these tests need bubblewrap (apt-get install bubblewrap) and user namespaces: ${hello.isolation.detail}`,
      );
    }
  }

  async launch(spec: OrderSpec, secrets: Record<string, string> = {}): Promise<DoubleOrder> {
    const order = this.intake.order(spec, secrets);
    await this.client.ask({ op: "launch", orderId: spec.orderId, token: order.token, intakeUrl: this.intake.url });
    return order;
  }

  /** Runs to the order's `end` record. */
  async run(command: string[], change: SpecChange = {}, secrets: Record<string, string> = {}): Promise<DoubleOrder> {
    const order = await this.launch(orderSpec(command, change), secrets);
    await until(() => order.ended, `${command.join(" ").slice(0, 60)} ends`);
    return order;
  }

  /** `kill -9` of the agent, as a machine's out-of-memory killer would. */
  async killAgent(): Promise<void> {
    process.kill(this.pid, "SIGKILL");
    await this.#gone();
  }

  async stopAgent(): Promise<void> {
    process.kill(this.pid, "SIGTERM");
    await this.#gone();
  }

  async stop(): Promise<void> {
    await this.stopAgent();
    this.#client?.close();
    await this.intake.stop();
    const faults = readFileSync(join(this.folder, "h", "host.log"), "utf8").match(/(uncaught|unhandled|Error:).*/g);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    if (faults) throw new Error(`the host agent met faults: ${faults.join("; ")}`);
  }

  #gone(): Promise<void> {
    const answers = async () => {
      try {
        (await HostClient.dial(join(this.folder, "h"))).close();
        return true;
      } catch {
        return false;
      }
    };
    return until(async () => !(await answers()), "the host agent is gone");
  }
}

/** Ends the agent of a folder and waits until it is gone; harmless where there is none. */
export async function stopHostAgent(folder: string): Promise<void> {
  const client = await HostClient.dial(folder).catch(() => null);
  if (!client) return;
  const { pid } = await client.ask({ op: "hello", intakeUrl: "" });
  process.kill(pid, "SIGTERM");
  await until(() => client.closed, "the host agent is gone");
}

/** Polls until something holds; fails with what was waited for. */
export async function until(holds: () => unknown, what: string, timeoutMs = 20_000): Promise<void> {
  for (const endsAt = Date.now() + timeoutMs; ; await sleep(5)) {
    if (await holds()) return;
    if (Date.now() > endsAt) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
  }
}

/** Command lines of live processes that contain `needle`. */
export function processesWith(needle: string): string[] {
  const table = execFileSync("ps", ["-eo", "pid,stat,args", "-ww"], { encoding: "utf8" });
  return table
    .split("\n")
    .filter((line) => line.includes(needle) && !/^\s*\d+ Z/.test(line) && !line.includes("ps -eo"));
}
