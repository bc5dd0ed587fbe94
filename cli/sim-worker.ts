import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import type { Simulated } from "../roles/simulation/simulate.ts";
import { removeThrowAway, throwAwayFolder } from "../roles/simulation/simulation-database.ts";
import { ClientError } from "./client.ts";

/** What is asked of a process that simulates. */
export interface LiveRequest {
  seed: number;
  durationMs: number;
  /** Whether every line of the trace is told. */
  traced: boolean;
}

/** What such a process tells. */
export type WorkerMessage =
  | { type: "line"; line: string }
  | { type: "lived"; simulated: Simulated; tookMs: number }
  /** The text of what went wrong, the seed and its command included where it is the simulated world's fault. */
  | { type: "failed"; message: string };

type Lived = Extract<WorkerMessage, { type: "lived" }>;

const ENTRY = path.join(import.meta.dirname, `sim-child${path.extname(import.meta.filename)}`);

/**
 * A process that lives through seeds, with a database of its own, for as long as this process lives: it ends and tidies
 * up by itself when this one is gone, however that came.
 */
export class SimWorker {
  readonly #child: ChildProcess;
  readonly #durationMs: number;
  readonly #listen: ((line: string) => void) | null;
  /** Code and signal. */
  readonly #exited: Promise<unknown[]>;
  readonly #folder = throwAwayFolder();
  #ending = false;

  constructor(durationMs: number, listen: ((line: string) => void) | null) {
    this.#durationMs = durationMs;
    this.#listen = listen;
    // A group of its own: an interrupt from the terminal reaches this process, which then ends the other in order.
    this.#child = fork(ENTRY, [this.#folder], {
      detached: true,
      execArgv: process.execArgv,
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#exited = once(this.#child, "exit");
  }

  /** @throws ClientError with what was not true, or when the process ended */
  live(seed: number): Promise<{ simulated: Simulated; tookMs: number }> {
    const child = this.#child;
    return new Promise<Lived>((resolve, reject) => {
      const ended = ([code, signal]: unknown[]) =>
        reject(new ClientError(`The process that lived through seed ${seed} ended by itself (${signal ?? code}).`));
      const told = (message: WorkerMessage) => {
        if (message.type === "line") this.#listen?.(message.line);
        if (message.type !== "lived" && message.type !== "failed") return;
        child.off("message", told);
        if (message.type === "lived") resolve(message);
        else reject(new ClientError(message.message));
      };
      child.on("message", told);
      this.#exited.then(ended, reject);
      const request: LiveRequest = { seed, durationMs: this.#durationMs, traced: this.#listen !== null };
      child.send(request, () => {}); // what cannot be sent has nobody there to take it, whose exit is told above
    });
  }

  /** Resolves when the process is gone and has left nothing. */
  async end(): Promise<void> {
    if (!this.#ending && this.#child.connected) this.#child.disconnect();
    this.#ending = true;
    await this.#exited;
    removeThrowAway(this.#folder); // nothing is left of it, unless it was killed
  }
}
