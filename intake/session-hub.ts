import { isWaitForOthersOver } from "../infra/db/unavailable.ts";
import type { Wakeups } from "../infra/live/wakeups.ts";
import type { Allowance, HostFrame, IntakeFrame } from "../infra/runner/protocol.ts";
import type { Logger } from "../infra/telemetry/logger.ts";
import type { LifecycleDeps } from "../subgraphs/compute/lifecycle/lifecycle-deps.ts";
import { applyRecords } from "../subgraphs/compute/lifecycle/record.commands.ts";
import { beat, currentAllowance, openSession, resumeSession } from "../subgraphs/compute/lifecycle/session.commands.ts";
import type { Session, SessionRefusal } from "../subgraphs/compute/lifecycle/session.ts";
import { topics } from "../subgraphs/compute/topics.ts";

export interface IntakeDeps extends LifecycleDeps {
  logger: Logger;
  wakeups: Pick<Wakeups, "on">;
}

/** One host's connection, whatever carries it. */
export interface HostConnection {
  /** Takes a frame; settles when it is dealt with, so a transport can stop reading while too many are open. */
  receive(frame: HostFrame): Promise<void>;
  /** The transport is gone. */
  closed(): void;
}

export interface Intake {
  /** `known` is called when the host has shown that an order is its own, for each order. */
  connect(send: (frame: IntakeFrame) => void, close: () => void, known?: () => void): HostConnection;
  /** Checks a session that came with an HTTP request; null when it is not the order's. */
  authorize(orderId: string, session: string): Promise<Session | null>;
  /** Orders that hosts are connected for; for tests and metrics. */
  readonly openOrders: number;
}

/** The server's side of the runner protocol, without a transport. It only calls commands: the rows are the truth. */
export function createIntake(deps: IntakeDeps): Intake {
  const orders = new Set<Order>();
  return {
    connect: (send, close, known = () => {}) => new Connection(deps, orders, send, close, known),
    authorize: async (orderId, session) => {
      const resumed = await resumeSession(deps, { orderId, session });
      return "refused" in resumed ? null : resumed.session;
    },
    get openOrders() {
      return orders.size;
    },
  };
}

interface Order {
  session: Session;
  /** The session's token; every frame repeats it. */
  token: string;
  /** Frames of one order are dealt with one after another. */
  turn: Promise<void>;
  off: () => void;
}

class Connection implements HostConnection {
  readonly #deps: IntakeDeps;
  readonly #all: Set<Order>;
  readonly #send: (frame: IntakeFrame) => void;
  readonly #close: () => void;
  readonly #known: () => void;
  readonly #orders = new Map<string, Order>();
  #closed = false;

  constructor(
    deps: IntakeDeps,
    all: Set<Order>,
    send: (frame: IntakeFrame) => void,
    close: () => void,
    known: () => void,
  ) {
    this.#deps = deps;
    this.#all = all;
    this.#send = send;
    this.#close = close;
    this.#known = known;
  }

  async receive(frame: HostFrame): Promise<void> {
    if (this.#closed) return;
    if (frame.type === "open" || frame.type === "resume") return this.#guard(frame.orderId, () => this.#begin(frame));
    const order = this.#orders.get(frame.orderId);
    if (!order || order.token !== frame.session) {
      this.#refuse(frame.orderId, "bad_frame", "Open or resume the order on this connection first.");
      return;
    }
    order.turn = order.turn.then(() => this.#guard(frame.orderId, () => this.#take(order, frame)));
    return order.turn;
  }

  closed(): void {
    this.#closed = true;
    for (const orderId of [...this.#orders.keys()]) this.#forget(orderId);
  }

  /** A fault here is the platform's, so the host is asked to try again; it keeps its spool. */
  async #guard(orderId: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (isWaitForOthersOver(error)) this.#deps.logger.info({ orderId }, "a host's frame wants what others hold");
      else this.#deps.logger.error({ err: error, orderId }, "a host's frame could not be dealt with");
      this.#refuse(orderId, "retry", "The platform could not take this just now.");
    }
  }

  async #begin(frame: Extract<HostFrame, { type: "open" | "resume" }>): Promise<void> {
    if (frame.type === "open") {
      const opened = await openSession(this.#deps, frame);
      if ("refused" in opened) return this.#turnAway(frame.orderId, opened);
      this.#remember(opened.session, opened.token);
      this.#reply({
        type: "opened",
        orderId: frame.orderId,
        session: opened.token,
        spec: opened.spec,
        secrets: opened.secrets,
        redact: Object.values(opened.secrets),
        allowance: opened.allowance,
      });
      return;
    }
    const resumed = await resumeSession(this.#deps, frame);
    if ("refused" in resumed) return this.#turnAway(frame.orderId, resumed);
    this.#remember(resumed.session, frame.session);
    this.#reply({ type: "resumed", orderId: frame.orderId, ackSeq: resumed.ackSeq, allowance: resumed.allowance });
  }

  async #take(order: Order, frame: Extract<HostFrame, { type: "records" | "beat" }>): Promise<void> {
    if (frame.type === "beat") {
      const allowance = await beat(this.#deps, order.session);
      if ("refused" in allowance) return this.#turnAway(frame.orderId, allowance);
      // Without its number a host would take the next change for the answer to a beat that never got here.
      this.#reply({ type: "want", orderId: frame.orderId, beat: frame.beat, allowance });
      return;
    }
    const applied = await applyRecords(this.#deps, order.session, frame.records);
    if ("refused" in applied) return this.#turnAway(frame.orderId, applied);
    if ("gap" in applied) return this.#refuse(frame.orderId, "bad_frame", `The next record is number ${applied.gap}.`);
    this.#reply({ type: "ack", orderId: frame.orderId, seq: applied.ackSeq });
    // Nothing follows it, and a host's connection may live as long as the platform does.
    const last = frame.records.at(-1);
    if (last?.type === "end" && applied.ackSeq >= last.seq) this.#forget(frame.orderId);
  }

  #remember(session: Session, token: string): void {
    this.#forget(session.orderId);
    const off = this.#deps.wakeups.on(
      topics.order(session.orderId),
      () => void this.#guard(session.orderId, () => this.#tell(session)),
    );
    const order: Order = { session, token, turn: Promise.resolve(), off };
    this.#orders.set(session.orderId, order);
    this.#all.add(order);
    this.#known();
    if (this.#closed) this.#forget(session.orderId);
  }

  /** Something of the order changed: the host hears at once what is wanted now. */
  async #tell(session: Session): Promise<void> {
    const allowance: Allowance | SessionRefusal = await currentAllowance(this.#deps, session);
    if (!this.#orders.has(session.orderId)) return;
    if ("refused" in allowance) return this.#turnAway(session.orderId, allowance);
    this.#reply({ type: "want", orderId: session.orderId, beat: null, allowance });
  }

  #forget(orderId: string): void {
    const order = this.#orders.get(orderId);
    if (!order) return;
    order.off();
    this.#orders.delete(orderId);
    this.#all.delete(order);
  }

  #turnAway(orderId: string, refusal: SessionRefusal): void {
    if (refusal.refused !== "retry") this.#forget(orderId);
    this.#refuse(orderId, refusal.refused, refusal.message);
  }

  #refuse(orderId: string, code: Extract<IntakeFrame, { type: "refused" }>["code"], message: string): void {
    this.#reply({ type: "refused", orderId, code, message });
  }

  #reply(frame: IntakeFrame): void {
    if (this.#closed) return;
    try {
      this.#send(frame);
    } catch (error) {
      this.#deps.logger.warn({ err: error }, "a host's connection broke while it was answered");
      this.#close();
    }
  }
}
