import { WebSocket } from "ws";
import { type HostFrame, type IntakeFrame, MAX_FRAME_BYTES } from "../protocol.ts";

const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 2_000;
/** A connection that is silent for longer than two of these is dead. */
const PING_MS = 10_000;

export interface LinkListener {
  /** A fresh connection: every session has to be taken up again. */
  connected(): void;
  disconnected(): void;
  frame(frame: IntakeFrame): void;
}

/** The one outbound connection to intake, kept up for as long as it is wanted. */
export class IntakeLink {
  readonly #listener: LinkListener;
  readonly #report: (message: string) => void;
  #url: string | null = null;
  #socket: WebSocket | null = null;
  #retry: NodeJS.Timeout | undefined;
  #retryMs = FIRST_RETRY_MS;
  #closed = false;

  constructor(listener: LinkListener, report: (message: string) => void) {
    this.#listener = listener;
    this.#report = report;
  }

  /** @param intakeUrl base URL such as `http://127.0.0.1:4000/runner/v1` */
  target(intakeUrl: string): void {
    const url = `${intakeUrl.replace(/^http/, "ws").replace(/\/$/, "")}/stream`;
    if (url === this.#url || this.#closed) return;
    this.#url = url;
    this.#retryMs = FIRST_RETRY_MS;
    this.#socket?.terminate();
    clearTimeout(this.#retry);
    this.#connect();
  }

  get connected(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** False when there is no connection; the frame is then not sent. */
  say(frame: HostFrame): boolean {
    if (!this.connected) return false;
    this.#socket!.send(JSON.stringify(frame));
    return true;
  }

  /** As `say`, for a frame that is text already; resolves when the socket took it. */
  sendText(frame: Buffer): Promise<boolean> {
    const socket = this.#socket;
    if (!socket || socket.readyState !== WebSocket.OPEN) return Promise.resolve(false);
    return new Promise((resolve) => socket.send(frame, { binary: false }, (error) => resolve(!error)));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#socket?.terminate();
  }

  #connect(): void {
    if (this.#closed || this.#url === null) return;
    const socket = new WebSocket(this.#url, {
      maxPayload: MAX_FRAME_BYTES,
      handshakeTimeout: 10_000,
      perMessageDeflate: false,
    });
    this.#socket = socket;
    let alive = true;
    const ping = setInterval(() => {
      if (!alive) return socket.terminate();
      alive = false;
      if (socket.readyState === WebSocket.OPEN) socket.ping();
    }, PING_MS);
    const heard = () => {
      alive = true;
    };
    socket.on("pong", heard).on("ping", heard);
    socket.on("open", () => {
      this.#retryMs = FIRST_RETRY_MS;
      this.#listener.connected();
    });
    socket.on("message", (data) => {
      heard();
      const frame = parseFrame(data as Buffer);
      if (frame) this.#listener.frame(frame);
      else this.#report("intake sent a frame that is none");
    });
    // A refused connection is expected while the platform is down; `close` follows and tries again.
    socket.on("error", () => {});
    socket.on("close", () => {
      clearInterval(ping);
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.#listener.disconnected();
      this.#retry = setTimeout(() => this.#connect(), this.#retryMs * (0.5 + Math.random() / 2));
      this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2);
    });
  }
}

/** Intake is trusted, yet a frame that can't be read must not end the host agent. */
function parseFrame(data: Buffer): IntakeFrame | null {
  try {
    const frame = JSON.parse(data.toString()) as IntakeFrame;
    return typeof frame?.type === "string" && typeof frame.orderId === "string" ? frame : null;
  } catch {
    return null;
  }
}
