import net from "node:net";
import { SocketFolder } from "../isolation/socket-folder.ts";
import type { HostAnswer, HostCommand } from "../protocol.ts";
import { HOST_SOCKET } from "./command-socket.ts";

type AnswerTo<C extends HostCommand> = Extract<HostAnswer, { ok: true; op: C["op"] }>;

/** The agent's answer is a refusal, such as a command that it does not know. */
export class HostRefusal extends Error {}

/** One connection to a host agent's command socket. Answers come in the order of the commands. */
export class HostClient {
  readonly #socket: net.Socket;
  readonly #waiting: { resolve: (answer: HostAnswer) => void; reject: (error: Error) => void }[] = [];
  #text = "";

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    socket.setEncoding("utf8").on("data", (part: string) => this.#read(part));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new Error("the host agent closed the connection"));
    });
    socket.unref();
  }

  /** Rejects when no agent listens in the folder. */
  static async dial(folder: string): Promise<HostClient> {
    const names = new SocketFolder(folder);
    try {
      return await new Promise((resolve, reject) => {
        const socket = net.connect(names.pathOf(HOST_SOCKET));
        socket.once("connect", () => resolve(new HostClient(socket))).once("error", reject);
      });
    } finally {
      names.close();
    }
  }

  get closed(): boolean {
    return this.#socket.destroyed;
  }

  /** Rejects when the connection breaks before the answer or `signal` aborts: what became of the command is unknown then. */
  async ask<C extends HostCommand>(command: C, signal?: AbortSignal): Promise<AnswerTo<C>> {
    signal?.throwIfAborted();
    const answer = await new Promise<HostAnswer>((resolve, reject) => {
      if (this.closed) return reject(new Error("the host agent is not connected"));
      signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      this.#waiting.push({ resolve, reject });
      this.#socket.ref();
      this.#socket.write(`${JSON.stringify(command)}\n`);
    });
    if (!answer.ok) throw new HostRefusal(`${answer.code}: ${answer.message}`);
    return answer as AnswerTo<C>;
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(part: string): void {
    this.#text += part;
    for (let end = this.#text.indexOf("\n"); end >= 0; end = this.#text.indexOf("\n")) {
      const answer = JSON.parse(this.#text.slice(0, end)) as HostAnswer;
      this.#text = this.#text.slice(end + 1);
      this.#waiting.shift()?.resolve(answer);
      // An idle connection keeps no process alive.
      if (this.#waiting.length === 0) this.#socket.unref();
    }
  }
}
