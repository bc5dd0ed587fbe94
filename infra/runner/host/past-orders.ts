import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

/** How many orders are remembered; a launch that comes later than that many others is not expected. */
const REMEMBERED = 20_000;

export type Fate = "ended" | "terminated";

/** What became of orders that are no more, over restarts: a late launch of one must not run it again. */
export class PastOrders {
  readonly #file: string;
  readonly #fates = new Map<string, Fate>();
  #lines = 0;

  constructor(file: string) {
    this.#file = file;
    if (!existsSync(file)) return;
    for (const line of readFileSync(file, "utf8").split("\n")) this.#read(line);
    this.#forgetOldest();
    this.#rewrite();
  }

  get(orderId: string): Fate | null {
    return this.#fates.get(orderId) ?? null;
  }

  /** Termination is the stronger fate and stays. */
  remember(orderId: string, fate: Fate): void {
    const known = this.#fates.get(orderId);
    if (known === fate || known === "terminated") return;
    this.#fates.set(orderId, fate);
    appendFileSync(this.#file, lineOf(orderId, fate), { mode: 0o600 });
    this.#lines++;
    this.#forgetOldest();
    if (this.#lines > 2 * REMEMBERED) this.#rewrite();
  }

  #read(line: string): void {
    try {
      const [orderId, fate] = JSON.parse(line) as [string, Fate];
      this.#fates.set(orderId, fate);
    } catch {
      // The empty end of the file, or a line that a crash cut off before its order was answered for.
    }
  }

  #forgetOldest(): void {
    for (const orderId of this.#fates.keys()) {
      if (this.#fates.size <= REMEMBERED) return;
      this.#fates.delete(orderId);
    }
  }

  #rewrite(): void {
    const lines = [...this.#fates].map(([orderId, fate]) => lineOf(orderId, fate));
    writeFileSync(`${this.#file}.new`, lines.join(""), { mode: 0o600 });
    renameSync(`${this.#file}.new`, this.#file);
    this.#lines = lines.length;
  }
}

function lineOf(orderId: string, fate: Fate): string {
  return `${JSON.stringify([orderId, fate])}\n`;
}
