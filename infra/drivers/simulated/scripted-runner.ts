import { createHash } from "node:crypto";
import type { Clock } from "../../kernel/clock.ts";
import { LIMITS } from "../../kernel/limits.ts";
import {
  type Allowance,
  type ExitRecord,
  type IntakeFrame,
  type KilledBy,
  type OrderSpec,
  RUNNER_PROTOCOL,
  type RunnerRecord,
} from "../../runner/protocol.ts";
import type { RunnerConnect, RunnerStream } from "./runner-transport.ts";
import type { Script, Scripts } from "./script.ts";

export interface RunnerOptions {
  orderId: string;
  token: string;
  clock: Clock;
  connect: RunnerConnect;
  scripts: Scripts;
  /** Everything was reported and acknowledged, or intake turned the order away. */
  onOver(): void;
}

type RecordBody = RunnerRecord extends infer R ? (R extends RunnerRecord ? Omit<R, "seq" | "at"> : never) : never;

const RECONNECT_MS = 500;

/**
 * A host agent with one guest that plays a script instead of a command. It speaks the runner protocol as a real one
 * does: token for session, numbered records kept until they are acknowledged, heartbeats, and the end of the guest by
 * its own clock when lease, funding or deadline run out.
 */
export class ScriptedRunner {
  readonly #options: RunnerOptions;
  readonly #dead = new AbortController();
  #stream: RunnerStream | null = null;
  #session: string | null = null;
  #spool: RunnerRecord[] = [];
  #seq = 0;
  #allowance: { given: Allowance; atMs: number } | null = null;
  /** From when the lease counts: the sending of what intake answered last. */
  #leaseFromMs = 0;
  /** When `open` or `resume` was sent. */
  #sentMs = 0;
  /** When open beats were sent, by number; the oldest first. */
  readonly #openBeats = new Map<number, number>();
  #allowanceChanged = () => {};
  #runningSinceMs: number | null = null;
  #logBytes = 0;
  readonly #logHash = createHash("sha256");
  #endSeq = Number.POSITIVE_INFINITY;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#connect();
  }

  /** The machine is gone: nothing more is said. */
  kill(): void {
    if (this.#dead.signal.aborted) return;
    this.#dead.abort();
    this.#stream?.closed();
    this.#stream = null;
  }

  #connect(): void {
    if (this.#dead.signal.aborted) return;
    const stream: RunnerStream = this.#options.connect(
      (frame) => this.#receive(frame),
      () => void this.#reconnect(stream),
    );
    this.#stream = stream;
    const { orderId, token, clock } = this.#options;
    this.#openBeats.clear();
    this.#sentMs = clock.monotonicMs();
    if (this.#session === null) void stream.receive({ type: "open", orderId, token, protocol: RUNNER_PROTOCOL });
    else void stream.receive({ type: "resume", orderId, session: this.#session, spooledSeq: this.#seq });
  }

  async #reconnect(lost: RunnerStream): Promise<void> {
    if (this.#stream !== lost) return;
    this.#stream = null;
    await this.#options.clock.sleep(RECONNECT_MS, this.#dead.signal);
    this.#connect();
  }

  #receive(frame: IntakeFrame): void {
    if (this.#dead.signal.aborted) return;
    switch (frame.type) {
      case "opened":
        this.#session = frame.session;
        this.#allow(frame.allowance, this.#sentMs);
        void this.#live(frame.spec);
        return;
      case "resumed":
        this.#acknowledge(frame.ackSeq);
        this.#allow(frame.allowance, this.#sentMs);
        this.#send(this.#spool);
        return;
      case "ack":
        this.#acknowledge(frame.seq);
        return;
      case "want":
        this.#allow(frame.allowance, this.#beatSentMs(frame.beat));
        return;
      case "refused":
        if (frame.code === "retry") void this.#tryAgain();
        else this.#over();
    }
  }

  async #tryAgain(): Promise<void> {
    const stream = this.#stream;
    stream?.closed();
    if (stream) await this.#reconnect(stream);
  }

  #over(): void {
    this.kill();
    this.#options.onOver();
  }

  /** When the beat was sent that a `want` answers; null for one that answers none. */
  #beatSentMs(beat: number | null | undefined): number | null {
    const number = beat === undefined ? this.#openBeats.keys().next().value : beat;
    const sentMs = this.#openBeats.get(number ?? -1) ?? null;
    for (const open of this.#openBeats.keys()) if (open <= (number ?? -1)) this.#openBeats.delete(open);
    return sentMs;
  }

  /** `leaseFromMs` is null where only what is wanted changed. */
  #allow(given: Allowance, leaseFromMs: number | null): void {
    this.#allowance = { given, atMs: this.#options.clock.monotonicMs() };
    if (leaseFromMs !== null) this.#leaseFromMs = leaseFromMs;
    this.#allowanceChanged();
  }

  #acknowledge(seq: number): void {
    this.#spool = this.#spool.filter((record) => record.seq > seq);
    if (seq >= this.#endSeq) this.#over();
  }

  #record(body: RecordBody): void {
    const at = this.#options.clock.now().toISOString();
    const record = { ...body, seq: ++this.#seq, at } as RunnerRecord;
    this.#spool.push(record);
    this.#send([record]);
  }

  #send(records: readonly RunnerRecord[]): void {
    if (records.length === 0 || this.#session === null) return;
    const { orderId } = this.#options;
    void this.#stream?.receive({ type: "records", orderId, session: this.#session, records: [...records] });
  }

  async #live(spec: OrderSpec): Promise<void> {
    void this.#beat();
    const { clock } = this.#options;
    const script = this.#options.scripts(spec);
    const isolation = { level: "none", ownUid: false, seccomp: false, limits: "rlimits", detail: "simulated" } as const;
    this.#record({ type: "phase", phase: "staging", isolation, note: null });
    await clock.sleep(script.stagingMs ?? 0, this.#dead.signal);
    if (script.exit?.startFailure) return this.#end({ ...script.exit, code: null }, null, 0);
    this.#runningSinceMs = clock.monotonicMs();
    this.#record({ type: "phase", phase: "running", isolation, note: null });
    const killedBy = await this.#play(script, spec);
    if (this.#dead.signal.aborted) return;
    this.#end(script.exit ?? {}, killedBy, Math.round(clock.monotonicMs() - this.#runningSinceMs));
  }

  async #beat(): Promise<void> {
    const { clock, orderId } = this.#options;
    for (let beat = 1; ; beat++) {
      await clock.sleep(LIMITS.heartbeatIntervalMs, this.#dead.signal);
      if (this.#dead.signal.aborted) return;
      if (this.#session === null || this.#stream === null) continue;
      this.#openBeats.set(beat, clock.monotonicMs());
      const usage = { cpuMs: 0, memoryBytes: 0, diskBytes: 0 };
      const frame = { type: "beat", orderId, session: this.#session, beat, spooledSeq: this.#seq, usage } as const;
      void this.#stream.receive(frame);
    }
  }

  /** Plays the steps until they are through or somebody or something ends them; says who. */
  async #play(script: Script, spec: OrderSpec): Promise<KilledBy | null> {
    const over = new AbortController();
    const stop = AbortSignal.any([over.signal, this.#dead.signal]);
    const killed = this.#untilKilled(script, spec, stop);
    const played = this.#steps(script, stop).then(() => null);
    const killedBy = await Promise.race([played, killed]);
    over.abort();
    return killedBy;
  }

  async #steps(script: Script, stop: AbortSignal): Promise<void> {
    for (const step of script.steps) {
      if (stop.aborted) return;
      if ("log" in step) this.#print(step.log);
      else if ("unit" in step) this.#record({ type: "unit", id: step.unit, ms: step.ms });
      else if ("waitMs" in step) await this.#options.clock.sleep(step.waitMs, stop);
      else {
        this.kill();
        return;
      }
    }
  }

  #print(text: string): void {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += LIMITS.logChunkBytes) {
      const chunk = bytes.subarray(at, at + LIMITS.logChunkBytes);
      this.#record({ type: "log", offset: this.#logBytes, data: chunk.toString("base64") });
      this.#logHash.update(chunk);
      this.#logBytes += chunk.length;
    }
  }

  /** Resolves when the guest must end before its command does; stays open when it need not. */
  async #untilKilled(script: Script, spec: OrderSpec, stop: AbortSignal): Promise<KilledBy | null> {
    while (!stop.aborted) {
      const wanted = KILLER_OF[this.#allowance!.given.want];
      if (wanted) {
        if (script.ignoresCancel) await this.#options.clock.sleep(spec.limits.cancelGraceMs, stop);
        return wanted;
      }
      const { atMs, by } = this.#latestEnd();
      const waitMs = atMs - this.#options.clock.monotonicMs();
      if (waitMs <= 0) return by;
      const changed = new AbortController();
      this.#allowanceChanged = () => changed.abort();
      await this.#options.clock.sleep(waitMs, AbortSignal.any([stop, changed.signal]));
    }
    return null;
  }

  /** When the guest ends by the host's own clock, and of what. */
  #latestEnd(): { atMs: number; by: KilledBy } {
    const { given, atMs } = this.#allowance!;
    const ends: { atMs: number; by: KilledBy }[] = [
      { atMs: this.#leaseFromMs + given.leaseMs - LIMITS.leaseMarginMs, by: "lease" },
    ];
    if (given.deadlineMs !== null) ends.push({ atMs: atMs + given.deadlineMs, by: "deadline" });
    if (given.fundedRunMs !== null) ends.push({ atMs: this.#runningSinceMs! + given.fundedRunMs, by: "funding" });
    return ends.reduce((first, e) => (e.atMs < first.atMs ? e : first));
  }

  #end(exit: NonNullable<Script["exit"]>, killedBy: KilledBy | null, ranMs: number): void {
    const signal = killedBy ? "SIGKILL" : (exit.signal ?? null);
    const failed = exit.startFailure ?? null;
    const code = signal || failed ? null : (exit.code ?? 0);
    const record: ExitRecord = {
      type: "exit",
      ...{ code, signal, oom: exit.oom ?? false, killedBy, startFailure: failed, ranMs },
    };
    this.#record(record);
    this.#endSeq = this.#seq + 1;
    const logSha256 = this.#logHash.digest("hex");
    this.#record({ type: "end", logBytes: this.#logBytes, logSha256, droppedUnits: 0 });
  }
}

const KILLER_OF: Record<Allowance["want"], KilledBy | null> = {
  run: null,
  cancel: "cancel",
  stop_budget: "funding",
  stop_deadline: "deadline",
  drain: "drain",
};
