import type { GuestUsage } from "../guest/guest.ts";
import type { HostFrame, OrderSpec } from "../protocol.ts";
import { Beats } from "./beats.ts";
import type { OrderFolder, StoredOrder } from "./order-folder.ts";
import { Sender } from "./sender.ts";
import { Spool, type SpoolState } from "./spool.ts";

export interface SessionPorts {
  now: () => Date;
  monotonicMs: () => number;
  /** False when there is no connection. */
  say: (frame: HostFrame) => boolean;
  sendText: (frame: Buffer) => Promise<boolean>;
  /** Records can't be kept or read any more. */
  failed: (error: Error) => void;
}

/** What host and intake have agreed on for one order: the session, its records, and how far both are. */
export class OrderSession {
  readonly spec: OrderSpec;
  readonly token: string;
  readonly spool: Spool;
  readonly #orderId: string;
  readonly #ports: SessionPorts;
  readonly #sender: Sender;
  readonly #beats = new Beats();
  /** Intake has taken the session up on the present connection. */
  #live = false;
  #beganAtMs = 0;

  private constructor(stored: StoredOrder, spool: Spool, sender: Sender, ports: SessionPorts) {
    this.#orderId = stored.orderId;
    this.spec = stored.spec;
    this.token = stored.session;
    this.spool = spool;
    this.#sender = sender;
    this.#ports = ports;
  }

  static async open(
    stored: StoredOrder,
    folder: OrderFolder,
    ports: SessionPorts,
  ): Promise<{ session: OrderSession; state: SpoolState }> {
    const link: { sender: Sender | null } = { sender: null };
    const { spool, state } = await Spool.open(folder.spool, {
      committedLogBytes: stored.spec.limits.logCommittedBytes,
      now: ports.now,
      onDurable: () => link.sender?.pump(),
      onFailure: ports.failed,
    });
    const sender = new Sender(spool, stored.orderId, stored.session, { send: ports.sendText, failed: ports.failed });
    link.sender = sender;
    return { session: new OrderSession(stored, spool, sender, ports), state };
  }

  get unacknowledged(): number {
    return this.#sender.unacknowledged;
  }

  /** Asks intake to take the session up; nothing else may be said before it has. */
  askToResume(): void {
    this.#beganAtMs = this.#ports.monotonicMs();
    const spooledSeq = this.spool.durable.seq;
    this.#ports.say({ type: "resume", orderId: this.#orderId, session: this.token, spooledSeq });
  }

  /** @returns when it was asked for */
  resumed(ackSeq: number): number {
    this.#live = true;
    void this.#sender.resume(ackSeq);
    return this.#beganAtMs;
  }

  interrupt(): void {
    this.#live = false;
    this.#beats.forget();
    this.#sender.pause();
  }

  beat(usage: GuestUsage & { diskBytes: number }): void {
    if (!this.#live) return;
    const beat = this.#beats.send(this.#ports.monotonicMs());
    const { token, spool } = this;
    this.#ports.say({
      type: "beat",
      orderId: this.#orderId,
      session: token,
      beat,
      spooledSeq: spool.durable.seq,
      usage,
    });
  }

  /** When the beat was sent that is answered; null for none. */
  answered(beat: number | null | undefined): number | null {
    return this.#beats.answered(beat);
  }

  acknowledge(seq: number): void {
    this.#sender.acknowledge(seq);
  }
}
