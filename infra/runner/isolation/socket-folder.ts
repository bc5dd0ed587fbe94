import { closeSync, constants, openSync } from "node:fs";

/** What `sun_path` holds, less the closing zero. */
const MAX_SOCKET_PATH_BYTES = 107;

/**
 * Names sockets in one folder so that they fit however deep the folder lies: a descriptor of the folder stands for its
 * path. Names are good for this process alone, until `close`.
 */
export class SocketFolder {
  readonly #folder: string;
  #fd: number | null = null;

  constructor(folder: string) {
    this.#folder = folder;
  }

  pathOf(name: string): string {
    const path = `${this.#folder}/${name}`;
    if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) return path;
    this.#fd ??= openSync(this.#folder, constants.O_RDONLY | constants.O_DIRECTORY);
    return `/proc/self/fd/${this.#fd}/${name}`;
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }
}
