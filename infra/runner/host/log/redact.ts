/** Stands for one or more secrets in a log. */
export const REDACTED = Buffer.from("[redacted]");

/** Shorter values are no secrets that could be told from ordinary output. */
export const SHORTEST_SECRET_BYTES = 4;

interface Node {
  next: Map<number, number>;
  /** State of the longest proper suffix that is also in the tree. */
  fail: number;
  depth: number;
  /** Longest secret that ends here, by itself or as a suffix; 0 for none. */
  ends: number;
  /** Shortest secret that passes through here. */
  shortest: number;
}

/** The secrets of one order, compiled once for both of its streams. */
export class SecretAutomaton {
  readonly nodes: Node[] = [{ next: new Map(), fail: 0, depth: 0, ends: 0, shortest: Number.POSITIVE_INFINITY }];
  /** 1 for every byte that a secret begins with. */
  readonly first = new Uint8Array(256);

  constructor(secrets: readonly string[]) {
    for (const bytes of distinctForms(secrets)) this.#insert(bytes);
    this.#link();
  }

  get empty(): boolean {
    return this.nodes.length === 1;
  }

  /** The state after `byte`: the longest end of the input that begins a secret. */
  step(state: number, byte: number): number {
    for (let at = state; ; at = this.nodes[at]!.fail) {
      const next = this.nodes[at]!.next.get(byte);
      if (next !== undefined) return next;
      if (at === 0) return 0;
    }
  }

  #insert(bytes: Buffer): void {
    this.first[bytes[0]!] = 1;
    let at = 0;
    for (const byte of bytes) {
      let next = this.nodes[at]!.next.get(byte);
      if (next === undefined) {
        next = this.nodes.length;
        this.nodes[at]!.next.set(byte, next);
        this.nodes.push({
          next: new Map(),
          fail: 0,
          depth: this.nodes[at]!.depth + 1,
          ends: 0,
          shortest: bytes.length,
        });
      }
      at = next;
      const node = this.nodes[at]!;
      node.shortest = Math.min(node.shortest, bytes.length);
    }
    this.nodes[at]!.ends = bytes.length;
  }

  /** Breadth first, so that the state that a node falls back to is complete before the node. */
  #link(): void {
    const queue = [...this.nodes[0]!.next.values()];
    for (let i = 0; i < queue.length; i++) {
      const node = this.nodes[queue[i]!]!;
      for (const [byte, child] of node.next) {
        this.nodes[child]!.fail = this.step(node.fail, byte);
        queue.push(child);
      }
      node.ends = Math.max(node.ends, this.nodes[node.fail]!.ends);
    }
  }
}

/** A secret as it is and as it stands inside a JSON string. */
function distinctForms(secrets: readonly string[]): Buffer[] {
  const forms = new Set(secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]));
  return [...forms].map((form) => Buffer.from(form)).filter((bytes) => bytes.length >= SHORTEST_SECRET_BYTES);
}

/** Bytes from `from` to before `to`, counted from the start of the stream. */
interface Span {
  from: number;
  to: number;
}

/**
 * Masks secrets in one stream, however its writes are cut: every byte that belongs to an occurrence of a secret is
 * covered, and each run of covered bytes comes out as one mask. What may still become a secret is held back, which is
 * never more than the longest secret less one byte. Linear in the input, whatever the guest prints.
 */
export class Redactor {
  readonly #automaton: SecretAutomaton;
  #state = 0;
  /** Undecided bytes; the first of them is at `#start` of the stream. */
  #held: Buffer = Buffer.alloc(0);
  #start = 0;
  /** Covered parts of what is undecided, in order and apart. */
  #covered: Span[] = [];
  /** The last mask ends here: covered bytes that follow at once belong to it. */
  #maskedTo = -1;

  constructor(automaton: SecretAutomaton) {
    this.#automaton = automaton;
  }

  get heldBytes(): number {
    return this.#held.length;
  }

  /** What can be let go of after `chunk` came. */
  push(chunk: Buffer): Buffer {
    if (this.#automaton.empty) return chunk;
    if (this.#held.length === 0 && this.#state === 0 && !this.#canBegin(chunk)) {
      this.#start += chunk.length;
      return chunk;
    }
    const base = this.#start + this.#held.length;
    for (let i = 0; i < chunk.length; i++) {
      this.#state = this.#automaton.step(this.#state, chunk[i]!);
      const ends = this.#automaton.nodes[this.#state]!.ends;
      if (ends > 0) this.#cover(base + i + 1 - ends, base + i + 1);
    }
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const undecided = this.#automaton.nodes[this.#state]!.depth;
    const decided = Math.max(this.#start, base + chunk.length - undecided);
    // What is covered stays covered, whatever comes.
    const over = this.#covered.find((span) => span.from <= decided && span.to > decided);
    return this.#release(over?.to ?? decided);
  }

  /**
   * Called when nothing came for a while. Lets a held end go if it is most likely ordinary text: at most three bytes
   * and a quarter of the secret that they could begin. Should the secret complete all the same, its rest is masked.
   */
  idle(): Buffer {
    const { depth, shortest } = this.#automaton.nodes[this.#state]!;
    const harmless = depth < SHORTEST_SECRET_BYTES && depth * 4 <= shortest;
    return harmless ? this.#release(this.#start + this.#held.length) : Buffer.alloc(0);
  }

  /** The stream is over: what did not become a secret is none. */
  end(): Buffer {
    return this.#release(this.#start + this.#held.length);
  }

  #canBegin(chunk: Buffer): boolean {
    const { first } = this.#automaton;
    for (let i = 0; i < chunk.length; i++) if (first[chunk[i]!] === 1) return true;
    return false;
  }

  #cover(from: number, to: number): void {
    let start = from;
    for (let last = this.#covered.at(-1); last && last.to >= start; last = this.#covered.at(-1)) {
      start = Math.min(start, last.from);
      this.#covered.pop();
    }
    this.#covered.push({ from: start, to });
  }

  /** Lets go of everything before `until`. */
  #release(until: number): Buffer {
    const parts: Buffer[] = [];
    let at = this.#start;
    while (this.#covered.length > 0 && at < until) {
      const span = this.#covered[0]!;
      const from = Math.max(span.from, at);
      if (from >= until) break;
      if (from > at) parts.push(this.#slice(at, from));
      const to = Math.min(span.to, until);
      if (from !== this.#maskedTo) parts.push(REDACTED);
      this.#maskedTo = to;
      at = to;
      if (span.to <= until) this.#covered.shift();
      else break;
    }
    if (at < until) parts.push(this.#slice(at, until));
    this.#held = this.#held.subarray(until - this.#start);
    this.#start = until;
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  #slice(from: number, to: number): Buffer {
    return this.#held.subarray(from - this.#start, to - this.#start);
  }
}
