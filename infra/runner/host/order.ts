import { setTimeout as sleep } from "node:timers/promises";
import { LIMITS } from "../../kernel/limits.ts";
import { killProcess } from "../isolation/processes.ts";
import { type ExitRecord, type IntakeFrame, RUNNER_PROTOCOL } from "../protocol.ts";
import { Execution, type GuestHost } from "./execution.ts";
import { lostWithItsHost } from "./exit-record.ts";
import type { IntakeLink } from "./link.ts";
import { OrderFolder, type StoredOrder } from "./order-folder.ts";
import { OrderSession } from "./order-session.ts";
import { collectOutputs } from "./outputs.ts";
import type { SpoolState } from "./spool.ts";

const RETRY_MS = 500;
/** How long a host agent that stops waits for the end of a guest; the guest dies with it in any case. */
const SHUTDOWN_MS = 3_000;

export type OrderState = "starting" | "running" | "ending" | "gone";

/** What an order needs of the host agent. */
export interface OrderHost {
  guests: GuestHost;
  link: IntakeLink;
  intakeUrl(): string;
  ordersFolder: string;
  report(message: string): void;
  /** No process and no file of its guest is left. */
  onGone(orderId: string): void;
  /** Intake has everything, or wants nothing: the order can be forgotten. */
  onClosed(orderId: string): void;
}

const NO_USAGE = { cpuMs: 0, memoryBytes: 0, diskBytes: 0 };

/** One order on this machine: its session with intake and the run that the session is about. */
export class Order {
  readonly id: string;
  readonly #host: OrderHost;
  readonly #folder: OrderFolder;
  /** One-time token; null for an order of an earlier life. */
  readonly #token: string | null;
  /** Nothing is wanted any more: outputs are not collected. */
  readonly #terminated = new AbortController();
  /** The host agent stops: outputs that are not saved yet are left to its next life. */
  readonly #leaving = new AbortController();
  /** Nothing is to be told any more: the session is fenced or unknown, or the spool is broken. */
  #discarded = false;
  #session: OrderSession | null = null;
  #execution: Execution | null = null;
  #state: OrderState = "starting";
  #closed = false;
  #opening = false;
  #askedToOpenAtMs = 0;
  /** Tells connections apart: a session is taken up on each anew. */
  #connections = 0;
  #expiry: NodeJS.Timeout | undefined;
  /** Resolves once the run has ended, if there is one. */
  #finished: Promise<void> = Promise.resolve();

  constructor(host: OrderHost, id: string, token: string | null) {
    this.#host = host;
    this.id = id;
    this.#token = token;
    this.#folder = new OrderFolder(host.ordersFolder, id);
    if (token !== null) this.#expiry = setTimeout(() => this.#expire(), LIMITS.bootTokenTtlMs);
  }

  get state(): OrderState {
    if (this.#state === "starting" && this.#execution?.running) return "running";
    return this.#state;
  }

  /** A fresh connection to intake, or a fresh attempt on it. */
  connected(): void {
    if (this.#closed) return;
    this.#connections++;
    if (this.#session) this.#session.askToResume();
    else if (this.#token !== null && !this.#opening) {
      this.#askedToOpenAtMs = this.#host.guests.clock.monotonicMs();
      this.#host.link.say({ type: "open", orderId: this.id, token: this.#token, protocol: RUNNER_PROTOCOL });
    }
  }

  disconnected(): void {
    this.#session?.interrupt();
  }

  /** Until everything is acknowledged: what is still on its way must not be taken for a host that is lost. */
  beat(): void {
    if (this.#closed) return;
    const alive = this.#state === "gone" ? null : this.#execution;
    this.#session?.beat(alive?.usage() ?? NO_USAGE);
    if (!alive) return;
    // How long a guest ran is charged by this mark, should the agent die.
    this.#folder.touch(this.#host.guests.clock.now());
  }

  async frame(frame: IntakeFrame): Promise<void> {
    if (this.#closed) return;
    if (frame.type === "opened") return this.#opened(frame);
    if (frame.type === "refused") return this.#refused(frame);
    if (!this.#session) return;
    if (frame.type === "resumed") {
      const askedAtMs = this.#session.resumed(frame.ackSeq);
      this.#execution?.allow(frame.allowance, askedAtMs);
    } else if (frame.type === "want") this.#execution?.allow(frame.allowance, this.#session.answered(frame.beat));
    else this.#session.acknowledge(frame.seq);
    this.#closeIfDone();
  }

  /** The platform wants it gone. */
  terminate(): void {
    this.#terminated.abort();
    this.#execution?.stop({ killedBy: "cancel", graceful: false });
    // Without a session there is nobody to tell and nothing to wait for.
    if (!this.#session && !this.#opening) void this.#discard();
  }

  /** The host agent stops: the guest ends, and what the spool holds of that the next life tells and brings to its end. */
  async shutDown(): Promise<void> {
    this.#leaving.abort();
    this.#execution?.stop({ killedBy: "host_shutdown", graceful: false });
    await Promise.race([this.#finished, sleep(SHUTDOWN_MS, undefined, { ref: false })]);
  }

  /** Takes up an order of an earlier life: its guest is dead or dies now, and what is known of it is told. */
  async recover(stored: StoredOrder): Promise<void> {
    this.#state = "ending";
    const guest = this.#folder.loadGuest();
    if (guest) killProcess(guest);
    const { session, state } = await this.#openSession(stored);
    // The connection may have come while the spool was read.
    if (this.#host.link.connected) session.askToResume();
    const exit = state.exit ?? lostWithItsHost(state, this.#folder.touchedAt());
    if (!state.exit) session.spool.appendAfterLog(exit);
    if (state.ended) this.#state = "gone";
    else await this.#finish(session, exit, state.outputs, 0);
  }

  async #opened(frame: Extract<IntakeFrame, { type: "opened" }>): Promise<void> {
    if (this.#session || this.#opening) return; // the answer to an `open` that was said twice
    this.#opening = true;
    const connection = this.#connections;
    this.#folder.create();
    const stored: StoredOrder = { orderId: this.id, session: frame.session, spec: frame.spec };
    await this.#folder.store(stored);
    const { session } = await this.#openSession(stored);
    if (connection === this.#connections) session.resumed(0);
    else if (this.#host.link.connected) session.askToResume();
    const { spec, secrets, redact } = frame;
    const execution = new Execution(
      this.#host.guests,
      {
        ...{ spec, secrets, redact, folder: this.#folder, spool: session.spool, objects: this.#objects(session) },
        announce: (init) => this.#folder.storeGuest(init),
        unacknowledged: () => session.unacknowledged,
      },
      frame.allowance,
      this.#askedToOpenAtMs,
    );
    this.#execution = execution;
    if (this.#terminated.signal.aborted) execution.stop({ killedBy: "cancel", graceful: false });
    if (this.#leaving.signal.aborted) execution.stop({ killedBy: "host_shutdown", graceful: false });
    this.#finished = this.#runToEnd(session, execution);
    return this.#finished;
  }

  /** A token that was not taken in its time never will be. */
  #expire(): void {
    if (!this.#session && !this.#opening) void this.#discard();
  }

  async #runToEnd(session: OrderSession, execution: Execution): Promise<void> {
    const exit = await execution.run();
    this.#state = "ending";
    session.spool.appendAfterLog(exit);
    await this.#finish(session, exit, new Set(), execution.droppedUnits);
  }

  async #openSession(stored: StoredOrder): Promise<{ session: OrderSession; state: SpoolState }> {
    const { clock } = this.#host.guests;
    const opened = await OrderSession.open(stored, this.#folder, {
      now: () => clock.now(),
      monotonicMs: () => clock.monotonicMs(),
      say: (frame) => this.#host.link.say(frame),
      sendText: (frame) => this.#host.link.sendText(frame),
      failed: (error) => this.#broken(error),
    });
    this.#session = opened.session;
    return opened;
  }

  #objects(session: OrderSession) {
    return { orderId: this.id, session: session.token, intakeUrl: () => this.#host.intakeUrl() };
  }

  async #finish(
    session: OrderSession,
    exit: ExitRecord,
    done: ReadonlySet<string>,
    droppedUnits: number,
  ): Promise<void> {
    const { spool, spec } = session;
    if (exit.killedBy === null && exit.startFailure === null) {
      const record = (fact: Parameters<typeof spool.append>[0]) => spool.append(fact);
      const over = AbortSignal.any([this.#terminated.signal, this.#leaving.signal]);
      await collectOutputs(spec, this.#folder.workspace, this.#objects(session), done, record, over);
      // An end told now would be that of a run without the outputs that are missing.
      if (this.#leaving.signal.aborted) return;
    }
    await this.#folder.removeGuestFiles();
    this.#execution?.releaseUid();
    spool.appendEnd(droppedUnits);
    await spool.flushed().catch(() => {}); // `#broken` has dealt with it
    this.#state = "gone";
    this.#host.onGone(this.id);
    this.#closeIfDone();
  }

  async #refused(frame: Extract<IntakeFrame, { type: "refused" }>): Promise<void> {
    this.#host.report(`${this.id}: intake refused with ${frame.code}: ${frame.message}`);
    if (frame.code !== "retry" && frame.code !== "bad_frame") return this.#discard();
    // What was refused is in the spool: taking the session up anew brings both sides to the same record.
    this.#session?.interrupt();
    setTimeout(() => this.#host.link.connected && this.connected(), RETRY_MS);
  }

  /** Without a spool nothing can be proven, so the guest must not go on; the platform learns of it by the lease. */
  #broken(error: Error): void {
    this.#host.report(`${this.id}: its records can't be kept: ${error.message}`);
    void this.#discard();
  }

  /** Intake wants to hear no more of it: the guest dies and its records are dropped. */
  async #discard(): Promise<void> {
    this.#discarded = true;
    this.#terminated.abort();
    this.#session?.interrupt();
    this.#execution?.stop({ killedBy: "lease", graceful: false });
    if (this.#session || this.#opening) return this.#closeIfDone(); // else `#finish` does, once the guest is gone
    this.#state = "gone";
    this.#host.onGone(this.id);
    await this.#close();
  }

  #closeIfDone(): void {
    if (this.#state === "gone" && (this.#discarded || this.#session?.unacknowledged === 0)) void this.#close();
  }

  async #close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#expiry);
    await this.#session?.spool.close();
    await this.#folder.remove();
    this.#host.onClosed(this.id);
  }
}
