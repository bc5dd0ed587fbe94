import { readdirSync } from "node:fs";
import WebSocket from "ws";
import type { Platform } from "./platform.ts";
import { kill, type Living } from "./process-table.ts";
import { until } from "./until.ts";

/** Set for a platform whose memory is to be looked at: the debugger then takes a free port when it is asked for. */
export const INSPECTABLE = { NODE_OPTIONS: "--inspect-port=0" };

/** What a process holds after garbage was collected. */
export interface Held {
  /** Live JavaScript objects and what they keep outside the heap, in bytes. */
  readonly bytes: number;
  /** Resident memory, in bytes. */
  readonly residentBytes: number;
  /** Handles and requests of the event loop. */
  readonly handles: number;
  readonly fileDescriptors: number;
}

interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

const HELD = `(() => { const { heapUsed, external, rss } = process.memoryUsage();
  return JSON.stringify({ bytes: heapUsed + external, residentBytes: rss, handles: process.getActiveResourcesInfo().length }) })()`;

/** Looks into the platform's main process through its debugger; nothing of the product is made for this. */
export class Inspected {
  readonly #socket: WebSocket;
  readonly #pid: number;
  readonly #answers = new Map<number, (message: Answer) => void>();
  #asked = 0;

  private constructor(socket: WebSocket, pid: number) {
    this.#socket = socket;
    this.#pid = pid;
    socket.on("message", (data) => {
      const message = JSON.parse(String(data)) as Answer;
      if (message.id !== undefined) this.#answers.get(message.id)?.(message);
    });
  }

  /** For a platform that was started with `INSPECTABLE`; holds for this life of it. */
  static async open(platform: Platform): Promise<Inspected> {
    const { pid } = mainProcess(platform);
    const before = platform.output.length;
    kill(pid, "SIGUSR1");
    const url = await until(
      "the debugger listens",
      () => /Debugger listening on (ws:\S+)/.exec(platform.output.slice(before))?.[1],
    );
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    return new Inspected(socket, pid);
  }

  /** Collects garbage and looks at what is left. */
  async held(): Promise<Held> {
    for (let round = 0; round < 2; round++) await this.#ask("HeapProfiler.collectGarbage");
    const { result } = await this.#ask<{ result: { value: string } }>("Runtime.evaluate", { expression: HELD });
    return { ...JSON.parse(result.value), fileDescriptors: fileDescriptors(this.#pid) };
  }

  close(): void {
    this.#socket.terminate();
  }

  #ask<T>(method: string, params: object = {}): Promise<T> {
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#answers.set(id, ({ result, error }) => {
        this.#answers.delete(id);
        if (error) reject(new Error(`${method}: ${error.message}`));
        else resolve(result as T);
      });
      this.#socket.send(JSON.stringify({ id, method, params }), (error) => error && reject(error));
    });
  }
}

/** The process that serves: host agent and PostgreSQL are others. */
export function mainProcess(platform: Platform): Living {
  const main = platform.processes().find(({ commandLine }) => /nodus\.js up$/.test(commandLine));
  if (!main) throw new Error("the platform does not run");
  return main;
}

function fileDescriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
