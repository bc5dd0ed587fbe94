import { statfs } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import { type HostClient, HostRefusal } from "../../runner/host/client.ts";
import { attachToHostAgent, endHostAgent, type LauncherSettings } from "../../runner/host/launcher.ts";
import type { IsolationReport } from "../../runner/protocol.ts";
import type { Driver, LaunchOrder, LaunchOutcome, Observation, OfferFact } from "../driver.ts";
import type { DeclaredAccelerator } from "./accelerators.ts";
import { localOffers } from "./local-offers.ts";
import { findNvidiaGpus, type GpuFinding } from "./nvidia.ts";

export interface LocalDriverSettings {
  /** The host agent's folder and how to start it. */
  host: LauncherSettings;
  /** Where the host agent finds intake, such as `http://127.0.0.1:4000/runner/v1`. */
  intakeUrl: string;
  /** Stable name of this machine within the deployment. */
  machineId: string;
  region: string;
  /** Price of one configuration on this machine. */
  rateMicrosPerHour: bigint;
  /** From `parseAccelerators`; devices that are only played. */
  declaredAccelerators: DeclaredAccelerator[];
  /** False leaves real devices unused. */
  useInstalledGpus: boolean;
}

/** How old a measured disk may be. */
const DISK_AGE_MS = 60_000;

/** This machine as a supplier: real processes under a host agent that outlives the platform. */
export class LocalDriver implements Driver {
  readonly supplier = "local";
  readonly #settings: LocalDriverSettings;
  #attaching: Promise<HostClient> | null = null;
  #isolation: IsolationReport | null = null;
  #found: Promise<GpuFinding> | null = null;
  #disk = { atMs: Number.NEGATIVE_INFINITY, freeBytes: 0 };

  constructor(settings: LocalDriverSettings) {
    this.#settings = settings;
  }

  /** What guests are isolated by, as the host agent measured it. Starts the agent if need be; rejects when it can't. */
  async isolation(): Promise<IsolationReport> {
    await this.#host();
    return this.#isolation!;
  }

  /** What was found out about real GPUs; a driver that is broken is told apart from none. */
  gpus(): Promise<GpuFinding> {
    if (!this.#settings.useInstalledGpus) return Promise.resolve({ status: "none" });
    this.#found ??= findNvidiaGpus();
    return this.#found;
  }

  async offers(signal: AbortSignal): Promise<OfferFact[]> {
    const isolation = await within(this.isolation(), signal);
    // Orders would be refused one by one: a machine that can't isolate has nothing to offer.
    if (isolation.level === "none" && !this.#settings.host.allowUnisolated) return [];
    const found = await this.gpus();
    const machine = {
      id: this.#settings.machineId,
      cores: availableParallelism(),
      memoryMb: Math.floor(totalmem() / 1024 ** 2),
      diskFreeBytes: await this.#freeDiskBytes(),
    };
    return localOffers(machine, {
      region: this.#settings.region,
      rateMicrosPerHour: this.#settings.rateMicrosPerHour,
      declared: this.#settings.declaredAccelerators,
      installed: found.status === "present" ? found.gpus : [],
      isolated: isolation.level !== "none",
    });
  }

  async launch(order: LaunchOrder, signal: AbortSignal): Promise<LaunchOutcome> {
    try {
      const host = await within(this.#host(), signal);
      if (this.#isolation?.level === "none" && !this.#settings.host.allowUnisolated) {
        return { outcome: "refused", reason: "isolation_unavailable", message: this.#isolation.detail };
      }
      const { state } = await host.ask(
        { op: "launch", orderId: order.orderId, token: order.token, intakeUrl: order.intakeUrl },
        signal,
      );
      if (state === "terminated")
        return { outcome: "refused", reason: "bad_order", message: "the order was terminated before" };
      return { outcome: "accepted" };
    } catch (error) {
      if (error instanceof HostRefusal) return { outcome: "refused", reason: "supplier_error", message: error.message };
      return { outcome: "unknown", message: (error as Error).message };
    }
  }

  async observe(orderId: string, signal: AbortSignal): Promise<Observation> {
    try {
      // An agent that was killed between a launch and the order's first file has never seen it in its next life. No guest
      // starts before that file, and none outlives its agent.
      return { state: (await (await within(this.#host(), signal)).ask({ op: "observe", orderId }, signal)).state };
    } catch (error) {
      return { state: "unknown", message: (error as Error).message };
    }
  }

  async terminate(orderId: string, signal: AbortSignal): Promise<"terminating" | "gone" | "unknown"> {
    try {
      return (await (await within(this.#host(), signal)).ask({ op: "terminate", orderId }, signal)).state;
    } catch {
      return "unknown"; // an outcome of its own: the caller repeats
    }
  }

  async list(signal: AbortSignal): Promise<string[] | null> {
    try {
      return (await (await within(this.#host(), signal)).ask({ op: "list" }, signal)).orders;
    } catch {
      return null; // can't tell now
    }
  }

  /** Lets go of the host agent, which lives on with its guests. */
  async close(): Promise<void> {
    (await this.#attaching?.catch(() => null))?.close();
    this.#attaching = null;
  }

  /** Measured now and then: an offer that changes with every written byte would be a new offer each time. */
  async #freeDiskBytes(): Promise<number> {
    const nowMs = performance.now();
    if (nowMs - this.#disk.atMs > DISK_AGE_MS) {
      const { bavail, bsize } = await statfs(this.#settings.host.folder);
      this.#disk = { atMs: nowMs, freeBytes: bavail * bsize };
    }
    return this.#disk.freeBytes;
  }

  /** The connection to the agent; a new one, and if need be a new agent, when the last one broke. */
  async #host(): Promise<HostClient> {
    const attaching = this.#attaching;
    if (attaching) {
      const client = await attaching.catch(() => null);
      if (client && !client.closed) return client;
      if (this.#attaching !== attaching) return this.#host(); // another caller was quicker
    }
    this.#attaching = this.#attach();
    return this.#attaching;
  }

  async #attach(): Promise<HostClient> {
    const { host, intakeUrl } = this.#settings;
    let client = await attachToHostAgent(host);
    let hello = await client.ask({ op: "hello", intakeUrl });
    // An agent of another build is replaced as soon as it has no orders; its guests would die with it.
    if (!host.attachOnly && hello.version !== host.version && (await client.ask({ op: "list" })).orders.length === 0) {
      await endHostAgent(client, hello.pid);
      client = await attachToHostAgent(host);
      hello = await client.ask({ op: "hello", intakeUrl });
    }
    this.#isolation = hello.isolation;
    return client;
  }
}

/** Rejects when the caller's patience ends first. */
function within<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    work.then(resolve, reject);
  });
}
