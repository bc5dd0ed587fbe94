import type { Clock } from "../../kernel/clock.ts";
import type { Guest, GuestPlan, StartFailure } from "../guest/guest.ts";
import type { ProcessIdentity } from "../isolation/processes.ts";
import type { Allowance, ExitRecord, IsolationReport, KilledBy, NetworkPolicy, OrderSpec } from "../protocol.ts";
import { Allowances, type Stop } from "./allowances.ts";
import type { DiskUse, DiskWatch } from "./disk-watch.ts";
import { neverRan, ran } from "./exit-record.ts";
import { type CommandPaths, commandEnvironment } from "./guest-environment.ts";
import { capture, untilDrained } from "./log/capture.ts";
import type { Marker } from "./log/marker-lines.ts";
import { SecretAutomaton } from "./log/redact.ts";
import { watchMemory } from "./memory-watch.ts";
import type { OrderFolder } from "./order-folder.ts";
import type { Spool } from "./spool.ts";
import { type ObjectSource, stage } from "./staging.ts";
import type { UidPool } from "./uid-pool.ts";

/** Unit observations that may wait for intake before further ones are only counted. */
const WAITING_UNITS = 10_000;
/** RL events that one generation may leave, which is what the platform keeps of a workload. */
const RL_EVENTS = 100_000;

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
  start(plan: GuestPlan, announce: (init: ProcessIdentity) => void): Promise<Guest>;
  /** Listens in the run folder; null where a guest's network can't be led through a proxy. */
  proxy(
    run: string,
    policy: NetworkPolicy,
    denied: (hostname: string, count: number) => void,
  ): Promise<{ close(): Promise<void> }> | null;
  devices(spec: OrderSpec): string[];
  close(): Promise<void>;
}

export interface ExecutionOrder {
  spec: OrderSpec;
  secrets: Record<string, string>;
  redact: string[];
  folder: OrderFolder;
  spool: Spool;
  source: ObjectSource;
  announce(init: ProcessIdentity): void;
  /** Records that intake has not confirmed. */
  unacknowledged(): number;
}

/** One run of one command, from staging to the last process. */
export class Execution {
  readonly #host: GuestHost;
  readonly #order: ExecutionOrder;
  readonly #allowances: Allowances;
  readonly #staging = new AbortController();
  #guest: Guest | null = null;
  #disk: DiskUse | null = null;
  #killedBy: KilledBy | null = null;
  #hardStopped = false;
  #runningSinceMs: number | null = null;
  #check: NodeJS.Timeout | undefined;
  #grace: NodeJS.Timeout | undefined;
  #rlEvents = 0;
  #droppedUnits = 0;

  constructor(host: GuestHost, order: ExecutionOrder, first: Allowance, askedAtMs: number) {
    this.#host = host;
    this.#order = order;
    this.#allowances = new Allowances(first, askedAtMs, host.clock.monotonicMs());
    this.#enforce();
  }

  get droppedUnits(): number {
    return this.#droppedUnits;
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

  /** Ends the guest. The first reason is the one that is reported; a later one may only make it quicker. */
  stop(stop: Stop): void {
    if (this.#guest?.commandOver || this.#hardStopped) return;
    const first = this.#killedBy === null;
    this.#killedBy ??= stop.killedBy;
    this.#staging.abort();
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
    const uid = this.#host.uids?.take() ?? null;
    try {
      folder.create();
      folder.prepareWorkspace(uid);
      await stage(spec, folder.workspace, uid, this.#order.source, this.#staging.signal);
      if (this.#killedBy) return this.#neverRan(null);
      return await this.#runGuest(uid);
    } catch (error) {
      return this.#neverRan({ kind: "staging", message: (error as Error).message });
    } finally {
      if (uid !== null) this.#host.uids?.release(uid);
    }
  }

  async #runGuest(uid: number | null): Promise<ExitRecord> {
    const { folder, spec, spool } = this.#order;
    const denied = (hostname: string, count: number) => spool.append({ type: "egress_denied", hostname, count });
    const proxy = await this.#host.proxy(folder.run, spec.network, denied);
    this.#disk = this.#host.disk.watch(folder.workspace, spec.limits.diskBytes, () =>
      this.stop({ killedBy: "disk", graceful: false }),
    );
    try {
      const guest = await this.#host.start(this.#plan(uid, proxy !== null), (init) => this.#order.announce(init));
      this.#guest = guest;
      if (this.#killedBy) guest.kill();
      const failure = await guest.started;
      if (failure) {
        await guest.ended;
        for (const stream of [guest.stdout, guest.stderr]) stream.destroy();
        return this.#neverRan(failure);
      }
      return await this.#watchCommand(guest);
    } finally {
      await proxy?.close();
    }
  }

  async #watchCommand(guest: Guest): Promise<ExitRecord> {
    const { spec, spool, secrets, redact } = this.#order;
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
      marker: (marker) => this.#mark(marker),
      pendingBytes: () => spool.pendingLogBytes,
      relieved: () => spool.relieved(),
    });
    const end = await guest.ended;
    const ranMs = Math.round(this.#host.clock.monotonicMs() - this.#runningSinceMs);
    unwatch();
    await untilDrained(guest, captured);
    return ran(end, this.#killedBy, ranMs);
  }

  #mark(marker: Marker): void {
    if (marker.type === "unit" && this.#order.unacknowledged() > WAITING_UNITS) this.#droppedUnits++;
    else if (marker.type === "unit" || this.#rlEvents++ < RL_EVENTS) this.#order.spool.append(marker);
  }

  #plan(uid: number | null, proxied: boolean): GuestPlan {
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
      devices: this.#host.devices(spec),
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
