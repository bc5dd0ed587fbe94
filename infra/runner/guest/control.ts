import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { SocketFolder } from "../isolation/socket-folder.ts";
import { CONTROL_SOCKET, type FromInit, MAX_CONTROL_LINE_BYTES, type ToInit } from "./messages.ts";

/** Milliseconds for what an ended init has said to arrive, which takes no time: it is in this machine's memory. */
const LAST_WORDS_MS = 2_000;

/** The host's end of a guest's control socket. The first to connect is init; nobody can connect after it. */
export class GuestControl {
  readonly #server: net.Server;
  readonly #hear: (message: FromInit) => void;
  #connection: net.Socket | null = null;
  #buffered = "";

  /**
   * @param hear told each well-formed line
   * @param connected told when init is there
   */
  private constructor(hear: (message: FromInit) => void, connected: () => void) {
    this.#hear = hear;
    this.#server = net.createServer((socket) => {
      if (this.#connection) return void socket.destroy();
      this.#connection = socket;
      this.#server.close();
      socket.setEncoding("utf8").on("data", (text: string) => this.#read(text));
      // The guest's end shows in its process; a broken socket says nothing more.
      socket.on("error", () => socket.destroy());
      connected();
    });
  }

  static async listen(
    folder: SocketFolder,
    hear: (message: FromInit) => void,
    connected: () => void,
  ): Promise<GuestControl> {
    const control = new GuestControl(hear, connected);
    await new Promise<void>((resolve, reject) => {
      control.#server.once("error", reject);
      // Guests have a uid of their own, so the mode must let it in; only this guest sees the folder.
      control.#server.listen({ path: folder.pathOf(CONTROL_SOCKET), readableAll: true, writableAll: true }, resolve);
    });
    return control;
  }

  /**
   * Resolves once all that init said before it ended has been heard: its process may be seen to end before its last words
   * are read. Waits no longer than `LAST_WORDS_MS`, should somebody else hold init's end.
   */
  async heardOut(): Promise<void> {
    const connection = this.#connection;
    if (!connection || connection.closed) return;
    const waiting = new AbortController();
    const closed = new Promise<void>((resolve) => connection.once("close", () => resolve()));
    const enough = sleep(LAST_WORDS_MS, undefined, { signal: waiting.signal }).catch(() => {}); // nobody waits any more
    await Promise.race([closed, enough]);
    waiting.abort();
  }

  tell(message: ToInit): void {
    this.#connection?.write(`${JSON.stringify(message)}\n`);
  }

  close(): void {
    this.#server.close();
    this.#connection?.destroy();
  }

  #read(text: string): void {
    this.#buffered += text;
    for (let end = this.#buffered.indexOf("\n"); end >= 0; end = this.#buffered.indexOf("\n")) {
      const message = parseFromInit(this.#buffered.slice(0, end));
      this.#buffered = this.#buffered.slice(end + 1);
      if (message) this.#hear(message);
    }
    if (this.#buffered.length > MAX_CONTROL_LINE_BYTES) this.#connection?.destroy();
  }
}

/** Null for anything that init does not say. */
function parseFromInit(line: string): FromInit | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (value === null || typeof value !== "object") return null;
  const { event, code, message, signal } = value as Record<string, unknown>;
  if (event === "starting" || event === "started") return { event };
  if (event === "not_started" && typeof code === "string" && typeof message === "string") {
    return { event, code: code.slice(0, 32), message: message.slice(0, 1024) };
  }
  if (event !== "exited") return null;
  if (Number.isInteger(code) && (code as number) >= 0 && (code as number) <= 255)
    return { event, code: code as number, signal: null };
  return typeof signal === "string" && /^SIG[A-Z0-9]{1,12}$/.test(signal) ? { event, code: null, signal } : null;
}
