import type { Clock } from "../../kernel/clock.ts";
import type { Guest, GuestPlan, StartFailure } from "../guest/guest.ts";
import { NO_COMMAND } from "../guest/start-failure.ts";
import type { ProcessIdentity } from "../isolation/processes.ts";
import type { Allowance, ExitRecord, IsolationReport, KilledBy, NetworkPolicy, OrderSpec } from "../protocol.ts";
import { Allowances, type Stop } from "./allowances.ts";
import type { DiskUse, DiskWatch } from "./disk-watch.ts";
import { neverRan, ran } from "./exit-record.ts";
import type { GpuPool } from "./gpu-pool.ts";
import { type CommandPaths, commandEnvironment } from "./guest-environment.ts";
import type { ObjectAccess } from "./intake-objects.ts";
import { capture, untilDrained } from "./log/capture.ts";
import { MarkerQuota } from "./log/marker-quota.ts";
import { SecretAutomaton } from "./log/redact.ts";
import { watchMemory } from "./memory-watch.ts";
import type { OrderFolder } from "./order-folder.ts";
import type { Spool } from "./spool.ts";
import { stage } from "./staging.ts";
import type { UidPool } from "./uid-pool.ts";

/** What a host agent gives to each execution. */
export interface GuestHost {
  clock: Clock;
  isolation: IsolationReport;
  /** Why guests are not run here; null when they are. */
  refusal: string | null;
  /** Null when guests run under the host agent's own uid. */
  uids: UidPool | null;
  disk: DiskWatch;
  /** Where the command finds its files. */
  paths(folder: OrderFolder): CommandPaths;
  /** Waits for its turn; rejects when `signal` aborts before that. */
  start(plan: GuestPlan, announce: (init: ProcessIdentity) => void, signal: AbortSignal): Promise<Guest>;
  /** Listens in the run folder; null where a guest's network can't be led through a proxy. */
  proxy(
    run: string,
    policy: NetworkPolicy,
    denied: (hostname: string, count: number) => void,
  ): Promise<{ close(): Promise<void> }> | null;
  gpus: GpuPool;
  close(): Promise<void>;
}

export interface ExecutionOrder {
  spec: OrderSpec;
  secrets: Record<string, string>;
  redact: string[];
  folder: OrderFolder;
  spool: Spool;
  objects: ObjectAccess;
  announce(init: ProcessIdentity): void;
  /** Records that intake has not confirmed. */
  unacknowledged(): number;
}

/** One run of one command, from staging to the last process. */
export class Execution {
  readonly #host: GuestHost;
  readonly #order: ExecutionOrder;
  readonly #allowances: Allowances;
  /** Aborts staging and the wait for a start. */
  readonly #preparation = new AbortController();
  #guest: Guest | null = null;
  #uid: number | null = null;
  #disk: DiskUse | null = null;
  #killedBy: KilledBy | null = null;
  #hardStopped = false;
  #runningSinceMs: number | null = null;
  #check: NodeJS.Timeout | undefined;
  #grace: NodeJS.Timeout | undefined;
  readonly #quota = new MarkerQuota();

  constructor(host: GuestHost, order: ExecutionOrder, first: Allowance, askedAtMs: number) {
    this.#host = host;
    this.#order = order;
    this.#allowances = new Allowances(first, askedAtMs, host.clock.monotonicMs());
    this.#enforce();
  }

  get droppedUnits(): number {
    return this.#quota.droppedUnits;
  }

  get running(): boolean {
    return this.#runningSinceMs !== null;
  }

  allow(allowance: Allowance, askedAtMs: number | null): void {
    this.#allowances.update(allowance, askedAtMs, this.#host.clock.monotonicMs());
    this.#enforce();
  }

  usage(): { cpuMs: number; memoryBytes: number; diskBytes: number } {
    const used = this.#guest?.usage() ?? { cpuMs: 0, memoryBytes: 0 };
    return { ...used, diskBytes: Math.min(this.#disk?.usedBytes ?? 0, Number.MAX_SAFE_INTEGER) };
  }

  /** Runs to the end and says how it was. Never rejects; no process is left afterwards. */
  async run(): Promise<ExitRecord> {
    try {
      return await this.#run();
    } catch (error) {
      return this.#neverRan({ kind: "internal", message: (error as Error).message });
    } finally {
      clearTimeout(this.#check);
      clearTimeout(this.#grace);
      this.#disk?.stop();
    }
  }

  /** Called when no file of the guest is left: only then may another guest have its uid. */
  releaseUid(): void {
    if (this.#uid !== null) this.#host.uids?.release(this.#uid);
    this.#uid = null;
  }

  /** Ends the guest. The first reason is the one that is reported; a later one may only make it quicker. */
  stop(stop: Stop): void {
    if (this.#guest?.commandOver || this.#hardStopped) return;
    const first = this.#killedBy === null;
    this.#killedBy ??= stop.killedBy;
    this.#preparation.abort();
    if (stop.graceful && this.#guest) {
      if (!first) return;
      this.#guest.terminate();
      this.#grace = setTimeout(() => this.#guest?.kill(), this.#order.spec.limits.cancelGraceMs);
      return;
    }
    this.#hardStopped = this.#guest !== null;
    this.#guest?.kill();
  }

  async #run(): Promise<ExitRecord> {
    const { spec, folder, spool } = this.#order;
    spool.append({
      type: "phase",
      phase: "staging",
      isolation: this.#host.isolation,
      note: `image ${spec.image} not pulled: host userland`,
    });
    if (this.#host.refusal !== null) return this.#neverRan({ kind: "isolation", message: this.#host.refusal });
    if (!spec.command[0]) return this.#neverRan(NO_COMMAND);
    const uid = this.#host.uids?.take() ?? null;
    this.#uid = uid;
    folder.create();
    folder.prepareWorkspace(uid);
    const unstaged = await this.#stage(uid);
    return this.#killedBy || unstaged ? this.#neverRan(unstaged) : await this.#runGuest(uid);
  }

  /** Why the files could not be brought; null when they are there. */
  async #stage(uid: number | null): Promise<StartFailure | null> {
    try {
      const { spec, folder, objects } = this.#order;
      const place = { workspace: folder.workspace, downloadFile: folder.download, uid };
      await stage(spec, place, objects, this.#preparation.signal);
      return null;
    } catch (error) {
      return { kind: "staging", message: (error as Error).message };
    }
  }

  async #runGuest(uid: number | null): Promise<ExitRecord> {
    const { folder, spec, spool } = this.#order;
    const denied = (hostname: string, count: number) => spool.append({ type: "egress_denied", hostname, count });
    const proxy = await this.#host.proxy(folder.run, spec.network, denied);
    const gpus = this.#host.gpus.take(spec.accelerator && !spec.accelerator.simulated ? spec.accelerator.count : 0);
    const tooBig = () => this.stop({ killedBy: "disk", graceful: false });
    this.#disk = this.#host.disk.watch(folder.workspace, spec.limits.diskBytes, tooBig);
    try {
      const plan = this.#plan(uid, proxy !== null, gpus.devices);
      const guest = await this.#host.start(plan, (init) => this.#order.announce(init), this.#preparation.signal);
      this.#guest = guest;
      if (this.#killedBy) guest.kill();
      const failure = await guest.started;
      if (!failure) return await this.#watchCommand(guest);
      await guest.ended;
      for (const stream of [guest.stdout, guest.stderr]) stream.destroy();
      return this.#neverRan(failure);
    } finally {
      gpus.release();
      await proxy?.close();
    }
  }

  async #watchCommand(guest: Guest): Promise<ExitRecord> {
    const { spec, spool, secrets, redact, unacknowledged } = this.#order;
    this.#runningSinceMs = this.#host.clock.monotonicMs();
    spool.append({ type: "phase", phase: "running", isolation: this.#host.isolation, note: null });
    this.#allowances.startRunning(this.#runningSinceMs);
    this.#enforce();
    const unwatch =
      this.#host.isolation.limits === "rlimits"
        ? watchMemory(
            () => guest.usage().memoryBytes,
            spec.limits.memoryBytes,
            () => this.stop({ killedBy: "memory", graceful: false }),
          )
        : () => {};
    const automaton = new SecretAutomaton([...Object.values(secrets), ...redact]);
    const captured = capture(guest, automaton, {
      log: (bytes) => spool.appendLog(bytes),
      marker: (marker) => void (this.#quota.admits(marker, unacknowledged()) && spool.append(marker)),
      pendingBytes: () => spool.pendingLogBytes,
      relieved: () => spool.relieved(),
    });
    const end = await guest.ended;
    const ranMs = Math.round(this.#host.clock.monotonicMs() - this.#runningSinceMs);
    unwatch();
    await untilDrained(guest, captured);
    return ran(end, this.#killedBy, ranMs);
  }

  #plan(uid: number | null, proxied: boolean, devices: string[]): GuestPlan {
    const { spec, secrets, folder } = this.#order;
    const paths = this.#host.paths(folder);
    return {
      name: spec.orderId,
      workspace: folder.workspace,
      run: folder.run,
      uid,
      command: spec.command,
      workingDirectory: paths.code,
      env: commandEnvironment(spec, secrets, paths, proxied),
      limits: spec.limits,
      devices,
    };
  }

  #enforce(): void {
    clearTimeout(this.#check);
    const nowMs = this.#host.clock.monotonicMs();
    const stop = this.#allowances.stopAt(nowMs);
    if (stop) this.stop(stop);
    const inMs = this.#allowances.nextCheckMs() - nowMs;
    // A limit that has passed has done what it can; the longest delay that a timer takes is 2^31 - 1 ms.
    if (inMs > 0) this.#check = setTimeout(() => this.#enforce(), Math.min(inMs + 1, 2_147_483_647));
  }

  #neverRan(failure: StartFailure | null): ExitRecord {
    return neverRan(failure, this.#killedBy);
  }
}
