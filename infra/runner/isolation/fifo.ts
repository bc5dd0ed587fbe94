import { execFile } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync, rmSync, unlinkSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

/** One direction of output from a guest to the host. */
export interface OutputPipe {
  /** Given to the guest at spawn; the host closes its copy right after. */
  writeFd: number;
  reader: Socket;
}

/** Made at a time: a process is started for each batch, not for each guest. */
const BATCH = 32;

/**
 * Real pipes for the output of guests. Node's own `stdio: "pipe"` is a socket pair, on which `echo > /dev/stdout` fails
 * with ENXIO, so named pipes are made, opened at both ends and unlinked at once.
 */
export class OutputPipes {
  readonly #folder: string;
  #made = 0;
  #ready: string[] = [];
  #making: Promise<unknown> | null = null;

  /** @param folder emptied, and private to the host, so that nobody else can open a name meanwhile */
  constructor(folder: string) {
    this.#folder = folder;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { mode: 0o700 });
  }

  async take(): Promise<OutputPipe> {
    return this.#open(constants.O_WRONLY);
  }

  /** One whose writer is not killed for writing when this process is dead: the descriptor given out can also be read. */
  async takeUnbreakable(): Promise<OutputPipe> {
    return this.#open(constants.O_RDWR);
  }

  async #open(mode: number): Promise<OutputPipe> {
    while (this.#ready.length === 0) {
      this.#making ??= this.#make().finally(() => {
        this.#making = null;
      });
      await this.#making;
    }
    const path = this.#ready.pop()!;
    const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writeFd = openSync(path, mode);
    unlinkSync(path);
    return { writeFd, reader: new Socket({ fd: readFd, readable: true, writable: false }) };
  }

  async #make(): Promise<void> {
    const paths = Array.from({ length: BATCH }, () => join(this.#folder, String(this.#made++)));
    // World-writable, because programs open /proc/self/fd/1 anew under the guest's uid.
    await promisify(execFile)("mkfifo", ["-m", "0666", ...paths]);
    this.#ready.push(...paths);
  }
}

export function closeWriteEnds(pipes: OutputPipe[]): void {
  for (const pipe of pipes) closeSync(pipe.writeFd);
}
