import { createHash } from "node:crypto";
import type { Clock } from "../../kernel/clock.ts";
import { LIMITS } from "../../kernel/limits.ts";
import {
  type ExitRecord,
  type IntakeFrame,
  type KilledBy,
  type OrderSpec,
  RUNNER_PROTOCOL,
  type RunnerRecord,
} from "../../runner/protocol.ts";
import { AllowanceWatch } from "./allowance-watch.ts";
import type { RunnerConnect, RunnerStream } from "./runner-transport.ts";
import type { Script, Scripts } from "./script.ts";

export interface RunnerOptions {
  orderId: string;
  token: string;
  clock: Clock;
  connect: RunnerConnect;
  scripts: Scripts;
  /** How often it is heard; the platform's usual interval unless given. */
  heartbeatIntervalMs?: number | undefined;
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
  readonly #watch: AllowanceWatch;
  #runningSinceMs: number | null = null;
  #running: OrderSpec | null = null;
  #logBytes = 0;
  readonly #logHash = createHash("sha256");
  #endSeq = Number.POSITIVE_INFINITY;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#watch = new AllowanceWatch(options.clock);
    this.#connect();
  }

  /** Nothing more is said. */
  get dead(): boolean {
    return this.#dead.signal.aborted;
  }

  /** What its command works on while the command runs; null before, and once it has ended. */
  get running(): { workloadId: string; stageId: string; generation: number } | null {
    return this.#endSeq === Number.POSITIVE_INFINITY && !this.dead ? this.#running : null;
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
    const { orderId, token } = this.#options;
    this.#watch.openingSent();
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
        this.#watch.opened(frame.allowance);
        void this.#live(frame.spec);
        return;
      case "resumed":
        this.#acknowledge(frame.ackSeq);
        this.#watch.opened(frame.allowance);
        this.#send(this.#spool);
        return;
      case "ack":
        this.#acknowledge(frame.seq);
        return;
      case "want":
        this.#watch.wanted(frame.allowance, frame.beat);
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
    this.#running = spec;
    this.#record({ type: "phase", phase: "running", isolation, note: null });
    const killedBy = await this.#play(script, spec);
    if (this.#dead.signal.aborted) return;
    this.#end(script.exit ?? {}, killedBy, Math.round(clock.monotonicMs() - this.#runningSinceMs));
  }

  async #beat(): Promise<void> {
    const { clock, orderId, heartbeatIntervalMs = LIMITS.heartbeatIntervalMs } = this.#options;
    for (let beat = 1; ; beat++) {
      await clock.sleep(heartbeatIntervalMs, this.#dead.signal);
      if (this.#dead.signal.aborted) return;
      if (this.#session === null || this.#stream === null) continue;
      this.#watch.beatSent(beat);
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

  /** Who asks for the end is obeyed at once, or, by a guest that takes no notice, when the grace is over. */
  async #untilKilled(script: Script, spec: OrderSpec, stop: AbortSignal): Promise<KilledBy | null> {
    const killedBy = await this.#watch.over(this.#runningSinceMs!, stop);
    const asked = killedBy === "cancel" || killedBy === "drain";
    if (asked && script.ignoresCancel) await this.#options.clock.sleep(spec.limits.cancelGraceMs, stop);
    return killedBy;
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
