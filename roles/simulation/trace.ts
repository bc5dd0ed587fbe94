import { createHash } from "node:crypto";

/** One thing that happened. */
export interface TraceEntry {
  /** True time since the beginning, milliseconds. */
  atMs: number;
  /** Who did it: `tenant`, `job`, `host`, `driver`, `database`, `chaos`, … */
  actor: string;
  action: string;
  outcome: string;
}

/** Last entries that a failure shows. */
const KEPT = 60;

/**
 * What happened in a simulated world, in order. The hash covers every entry, so two runs with the same hash went the
 * same way.
 */
export class Trace {
  readonly #hash = createHash("sha256");
  readonly #last: TraceEntry[] = [];
  readonly #listen: ((line: string) => void) | null;
  #count = 0;

  /** @param listen is told every entry as a line of text */
  constructor(listen: ((line: string) => void) | null = null) {
    this.#listen = listen;
  }

  /** Entries so far. */
  get count(): number {
    return this.#count;
  }

  add(entry: TraceEntry): void {
    const line = lineOf(entry);
    this.#hash.update(`${line}\n`);
    this.#count++;
    this.#listen?.(line);
    if (entry.actor === "database" && !/insert|update|delete/.test(entry.action + entry.outcome)) return;
    this.#last.push(entry);
    if (this.#last.length > 4 * KEPT) this.#last.splice(0, 3 * KEPT);
  }

  /** The last entries as text, without what only looked at the database. */
  last(): string[] {
    return this.#last.slice(-KEPT).map(lineOf);
  }

  /** SHA-256 of all entries in lower-case hexadecimal; may be asked for at any time. */
  hash(): string {
    return this.#hash.copy().digest("hex");
  }
}

function lineOf({ atMs, actor, action, outcome }: TraceEntry): string {
  return `${clockText(atMs)}\t${actor}\t${action}\t${outcome}`;
}

function clockText(atMs: number): string {
  const text = new Date(atMs).toISOString();
  const days = Math.floor(atMs / 86_400_000);
  return `${days > 0 ? `${days}d ` : ""}${text.slice(11, 23)}`;
}
