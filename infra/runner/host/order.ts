import { utimesSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { killProcess } from "../isolation/processes.ts";
import type { ExitRecord, IntakeFrame, OrderSpec } from "../protocol.ts";
import { RUNNER_PROTOCOL } from "../protocol.ts";
import { Execution, type GuestHost } from "./execution.ts";
import type { IntakeLink } from "./link.ts";
import { OrderFolder, type StoredOrder } from "./order-folder.ts";
import { collectOutputs } from "./outputs.ts";
import { Sender } from "./sender.ts";
import { Spool, type SpoolState } from "./spool.ts";

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

/** What of an order is known once intake has opened it. */
interface Session {
  session: string;
  spec: OrderSpec;
  spool: Spool;
  sender: Sender;
}

/** One order on this machine: its session with intake and the run that the session is about. */
export class Order {
  readonly id: string;
  readonly #host: OrderHost;
  readonly #folder: OrderFolder;
  /** Nothing is wanted any more: outputs are not collected. */
  readonly #terminated = new AbortController();
  /** Nothing is to be told any more: the session is fenced or unknown. */
  #discarded = false;
  /** One-time token; null for an order of an earlier life. */
  readonly #token: string | null;
  #session: Session | null = null;
  #execution: Execution | null = null;
  #state: OrderState = "starting";
  #closed = false;
  #opening = false;
  /** Resolves once the run has ended, if there is one. */
  #finished: Promise<void> = Promise.resolve();
  /** When the frames were sent that intake has yet to answer, oldest first. */
  #asked: number[] = [];

  constructor(host: OrderHost, id: string, token: string | null) {
    this.#host = host;
    this.id = id;
    this.#token = token;
    this.#folder = new OrderFolder(host.ordersFolder, id);
  }

  get state(): OrderState {
    if (this.#state === "starting" && this.#execution?.running) return "running";
    return this.#state;
  }

  /** A fresh connection to intake. */
  connected(): void {
    if (this.#closed) return;
    this.#asked = [this.#host.guests.clock.monotonicMs()];
    if (this.#session) {
      const { session, spool } = this.#session;
      this.#host.link.say({ type: "resume", orderId: this.id, session, spooledSeq: spool.durable.seq });
    } else if (this.#token !== null && !this.#opening) {
      this.#host.link.say({ type: "open", orderId: this.id, token: this.#token, protocol: RUNNER_PROTOCOL });
    }
  }

  disconnected(): void {
    this.#asked = [];
    this.#session?.sender.pause();
  }

  beat(): void {
    if (!this.#session || !this.#execution || this.#state === "gone") return;
    const { session, spool } = this.#session;
    const frame = {
      type: "beat",
      orderId: this.id,
      session,
      spooledSeq: spool.durable.seq,
      usage: this.#execution.usage(),
    } as const;
    if (this.#host.link.say(frame)) this.#asked.push(this.#host.guests.clock.monotonicMs());
    this.#touch();
  }

  async frame(frame: IntakeFrame): Promise<void> {
    if (this.#closed) return;
    switch (frame.type) {
      case "opened":
        return this.#opened(frame);
      case "resumed":
        this.#execution?.allow(frame.allowance, this.#asked.shift() ?? null);
        return this.#session?.sender.resume(frame.ackSeq);
      case "want":
        return this.#execution?.allow(frame.allowance, this.#asked.shift() ?? null);
      case "ack":
        this.#session?.sender.acknowledge(frame.seq);
        return this.#closeIfDone();
      case "refused":
        return this.#refused(frame);
    }
  }

  /** The platform wants it gone. */
  terminate(): void {
    this.#terminated.abort();
    this.#execution?.stop({ killedBy: "cancel", graceful: false });
    // Without a session there is nobody to tell and nothing to wait for.
    if (!this.#session && !this.#opening) void this.#discard();
  }

  /** The host agent stops: the guest ends, and what the spool holds of that the next life tells. */
  async shutDown(): Promise<void> {
    this.#terminated.abort();
    this.#execution?.stop({ killedBy: "host_shutdown", graceful: false });
    await Promise.race([this.#finished, sleep(SHUTDOWN_MS, undefined, { ref: false })]);
  }

  async #opened(frame: Extract<IntakeFrame, { type: "opened" }>): Promise<void> {
    if (this.#session || this.#opening) return; // the answer to an `open` that was said twice
    this.#opening = true;
    const askedAtMs = this.#asked.shift() ?? this.#host.guests.clock.monotonicMs();
    this.#folder.create();
    const stored: StoredOrder = { orderId: this.id, session: frame.session, spec: frame.spec };
    await this.#folder.store(stored);
    const { session } = await this.#openSpool(stored);
    await session.sender.resume(0);
    const execution = new Execution(
      this.#host.guests,
      {
        ...{
          spec: frame.spec,
          secrets: frame.secrets,
          redact: frame.redact,
          folder: this.#folder,
          spool: session.spool,
        },
        source: { intakeUrl: () => this.#host.intakeUrl(), session: frame.session },
        announce: (init) => this.#folder.storeGuest(init),
        unacknowledged: () => session.sender.unacknowledged,
      },
      frame.allowance,
      askedAtMs,
    );
    this.#execution = execution;
    if (this.#terminated.signal.aborted) execution.stop({ killedBy: "cancel", graceful: false });
    this.#finished = this.#runToEnd(session, execution);
    return this.#finished;
  }

  async #runToEnd(session: Session, execution: Execution): Promise<void> {
    const exit = await execution.run();
    this.#state = "ending";
    session.spool.appendAfterLog(exit);
    await this.#finish(session, exit, new Set(), execution.droppedUnits);
  }

  /** Takes up an order of an earlier life: its guest is dead or dies now, and what is known of it is told. */
  async recover(stored: StoredOrder): Promise<void> {
    this.#state = "ending";
    const guest = this.#folder.loadGuest();
    if (guest) killProcess(guest);
    const { session, state } = await this.#openSpool(stored);
    let exit = state.exit;
    if (!exit) {
      const startFailure = null;
      exit = {
        type: "exit",
        code: null,
        signal: null,
        oom: false,
        killedBy: "host_shutdown",
        startFailure,
        ranMs: this.#lastSeenMs(state),
      };
      session.spool.appendAfterLog(exit);
    }
    if (state.ended) this.#state = "gone";
    else await this.#finish(session, exit, state.outputs, 0);
  }

  async #openSpool(stored: StoredOrder): Promise<{ session: Session; state: SpoolState }> {
    const { spool, state } = await Spool.open(this.#folder.spool, {
      committedLogBytes: stored.spec.limits.logCommittedBytes,
      now: () => this.#host.guests.clock.now(),
      onDurable: () => this.#session?.sender.pump(),
    });
    const sender = new Sender(spool, this.id, stored.session, {
      send: (frame) => this.#host.link.sendText(frame),
      failed: (error) => this.#host.report(`${this.id}: ${error.message}`),
    });
    this.#session = { session: stored.session, spec: stored.spec, spool, sender };
    return { session: this.#session, state };
  }

  async #finish(session: Session, exit: ExitRecord, done: ReadonlySet<string>, droppedUnits: number): Promise<void> {
    if (exit.killedBy === null && exit.startFailure === null) {
      const source = { intakeUrl: () => this.#host.intakeUrl(), session: session.session };
      await collectOutputs(
        session.spec,
        this.#folder.workspace,
        source,
        done,
        (fact) => session.spool.append(fact),
        this.#terminated.signal,
      );
    }
    await this.#folder.removeGuestFiles();
    session.spool.appendEnd(droppedUnits);
    await session.spool.flushed();
    this.#state = "gone";
    this.#host.onGone(this.id);
    this.#closeIfDone();
  }

  async #refused(frame: Extract<IntakeFrame, { type: "refused" }>): Promise<void> {
    this.#host.report(`${this.id}: intake refused with ${frame.code}: ${frame.message}`);
    if (frame.code !== "retry") return this.#discard();
    this.#session?.sender.pause();
    setTimeout(() => this.#host.link.connected && this.connected(), RETRY_MS);
  }

  /** Intake wants to hear no more of it: the guest dies and its records are dropped. */
  async #discard(): Promise<void> {
    this.#discarded = true;
    this.#terminated.abort();
    this.#session?.sender.pause();
    this.#execution?.stop({ killedBy: "lease", graceful: false });
    if (this.#session || this.#opening) return this.#closeIfDone(); // else `#finish` does, once the guest is gone
    this.#state = "gone";
    this.#host.onGone(this.id);
    await this.#close();
  }

  #closeIfDone(): void {
    if (this.#state === "gone" && (this.#discarded || this.#session?.sender.unacknowledged === 0)) void this.#close();
  }

  async #close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#session?.spool.close();
    await this.#folder.remove();
    this.#host.onClosed(this.id);
  }

  /** Leaves a mark of life that outlives this process: how long a guest ran is charged by it. */
  #touch(): void {
    const now = this.#host.guests.clock.now();
    utimesSync(join(this.#folder.root, "order.json"), now, now);
  }

  #lastSeenMs(state: SpoolState): number {
    if (!state.runningAt) return 0;
    const seenAt = Math.max(this.#folder.touchedAt().getTime(), state.lastAt?.getTime() ?? 0);
    return Math.max(0, Math.round(seenAt - state.runningAt.getTime()));
  }
}
