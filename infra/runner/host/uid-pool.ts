import { createHash } from "node:crypto";

const FIRST_UID = 200_000;
const UIDS_PER_HOST = 2_000;
const HOSTS = 1_000;

/** Host uids that no account has, one for each live guest. */
export class UidPool {
  readonly #first: number;
  readonly #taken = new Set<number>();

  /** @param name of the host agent; agents of one machine get ranges of their own */
  constructor(name: string) {
    this.#first = FIRST_UID + (createHash("sha256").update(name).digest().readUInt32LE() % HOSTS) * UIDS_PER_HOST;
  }

  /** For trying things out; never given to a guest. */
  get probe(): number {
    return this.#first;
  }

  /** Throws when all are taken. */
  take(): number {
    for (let uid = this.#first + 1; uid < this.#first + UIDS_PER_HOST; uid++) {
      if (this.#taken.has(uid)) continue;
      this.#taken.add(uid);
      return uid;
    }
    throw new Error(`all ${UIDS_PER_HOST - 1} guest uids are in use`);
  }

  release(uid: number): void {
    this.#taken.delete(uid);
  }
}
