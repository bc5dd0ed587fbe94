import { readdirSync } from "node:fs";

/** Files that every user of an NVIDIA device needs. */
const SHARED = /^nvidia(ctl|-uvm|-uvm-tools|-modeset)$/;

/** The machine's NVIDIA devices, each given to one guest at a time. A guest sees the files of its own devices alone. */
export class GpuPool {
  readonly #free: string[];
  readonly #shared: string[];

  /** @param names of the files in /dev */
  constructor(names: readonly string[] = readdirSync("/dev")) {
    const paths = (pattern: RegExp) => names.filter((name) => pattern.test(name)).map((name) => `/dev/${name}`);
    this.#free = paths(/^nvidia\d+$/).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    this.#shared = paths(SHARED);
  }

  /** Throws when fewer are free: the platform counts them, so that would be its error. */
  take(count: number): { devices: string[]; release: () => void } {
    if (count > this.#free.length) throw new Error(`${count} GPUs were ordered and ${this.#free.length} are free`);
    const taken = this.#free.splice(0, count);
    return {
      devices: [...taken, ...(count > 0 ? this.#shared : [])],
      release: () => void this.#free.push(...taken.splice(0)),
    };
  }
}
