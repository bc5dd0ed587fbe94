import type { RunnerConnect, RunnerStream } from "../../infra/drivers/simulated/runner-transport.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import type { HostFrame, IntakeFrame } from "../../infra/runner/protocol.ts";
import type { Intake } from "../../intake/session-hub.ts";
import type { HappeningCounter } from "./happenings.ts";

/** A platform process as hosts reach it. */
export interface Reachable {
  readonly alive: boolean;
  readonly intake: Intake;
}

export interface HostNetworkOptions {
  /** Of nobody: a network outlives processes. */
  clock: Clock;
  /** The process that a new stream gets to; null when none answers. */
  route(): Reachable | null;
  note(actor: string, action: string, outcome: string): void;
  count: HappeningCounter["count"];
}

/** How long a stream that reaches nobody takes to fail. */
const REFUSED_MS = 1_000;

interface Stream {
  orderId: string;
  process: Reachable | null;
  cut(): void;
}

/** The network between hosts and intake: streams break, and a host may be cut off for a while without noticing it. */
export class HostNetwork {
  readonly #options: HostNetworkOptions;
  readonly #streams = new Set<Stream>();
  /** Orders whose frames go nowhere, both ways. */
  readonly #cutOff = new Set<string>();
  /** Last record that intake has acknowledged, by order, whether that arrived or not. */
  readonly acknowledged = new Map<string, number>();

  constructor(options: HostNetworkOptions) {
    this.#options = options;
  }

  /** Orders with an open stream. */
  get connected(): string[] {
    return [...this.#streams].map((stream) => stream.orderId).filter((id) => id !== "");
  }

  /** How hosts connect. */
  readonly connect: RunnerConnect = (send, close) => this.#open(send, close);

  /** Breaks an order's stream; its host connects anew. */
  cut(orderId: string): void {
    for (const stream of [...this.#streams]) {
      if (stream.orderId !== orderId) continue;
      this.#options.count("hosts", "stream broken");
      stream.cut();
    }
  }

  /** Nothing of this order's host arrives anywhere for a while; then its stream breaks. */
  async cutOff(orderId: string, ms: number): Promise<void> {
    const { clock, count } = this.#options;
    this.#cutOff.add(orderId);
    count("hosts", ms > LIMITS.leaseMs ? "cut off for longer than a lease" : "cut off");
    await clock.sleep(ms);
    this.#cutOff.delete(orderId);
    this.cut(orderId);
  }

  /** The streams of a process that died break. */
  processDied(process: Reachable): void {
    for (const stream of [...this.#streams]) if (stream.process === process) stream.cut();
  }

  #open(send: (frame: IntakeFrame) => void, close: () => void): RunnerStream {
    const { clock, route, note } = this.#options;
    const process = route();
    const passes = () => process?.alive === true && !this.#cutOff.has(stream.orderId);
    const connection = process?.intake.connect(
      (frame) => {
        if (frame.type === "ack")
          this.acknowledged.set(frame.orderId, Math.max(frame.seq, this.acknowledged.get(frame.orderId) ?? 0));
        if (!passes()) return;
        note("intake", `${frame.type} ${frame.orderId}`, answerOf(frame));
        send(frame);
      },
      () => stream.cut(),
    );
    const end = () => {
      this.#streams.delete(stream);
      connection?.closed();
    };
    const stream: Stream = {
      orderId: "",
      process,
      cut: () => {
        if (!this.#streams.has(stream)) return;
        end();
        close();
      },
    };
    this.#streams.add(stream);
    if (!connection) void clock.sleep(REFUSED_MS).then(() => stream.cut());
    return {
      receive: (frame) => {
        stream.orderId = frame.orderId;
        if (!connection || !passes()) return;
        note("host", `${frame.type} ${frame.orderId}`, saidBy(frame));
        return connection.receive(frame);
      },
      closed: end,
    };
  }
}

function answerOf(frame: IntakeFrame): string {
  switch (frame.type) {
    case "ack":
      return String(frame.seq);
    case "want":
      return frame.allowance.want;
    case "refused":
      return frame.code;
    default:
      return "";
  }
}

function saidBy(frame: HostFrame): string {
  return frame.type === "records" ? frame.records.map((r) => `${r.seq} ${r.type}`).join(", ") : "";
}
