/** Output lines that say more than text, by what they begin with. */
const UNIT_PREFIX = "nodus.unit_done ";
const RL_PREFIX = "nodus.rl_event ";

/** Longest line that is looked into; an RL event has at most 16 KiB in an encoding that may be four times as long. */
export const MAX_MARKER_LINE_BYTES = 64 * 1024;
const MAX_UNIT_ID_BYTES = 128;
const PREFIXES = [UNIT_PREFIX, RL_PREFIX].map((prefix) => Buffer.from(prefix));
const LONGEST_PREFIX = Math.max(...PREFIXES.map((prefix) => prefix.length));
const NEWLINE = 10;

export type Marker = { type: "unit"; id: string; ms: number } | { type: "rl_event"; event: Record<string, unknown> };

/** Finds marker lines in one stream, however its reads are cut. Only whole lines count: the last one needs its break. */
export class MarkerLines {
  readonly #found: (marker: Marker) => void;
  /** Beginning of the current line while it may still be a marker; null once it can't. */
  #line: Buffer[] | null = [];
  #lineBytes = 0;

  constructor(found: (marker: Marker) => void) {
    this.#found = found;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      const newline = chunk.indexOf(NEWLINE, at);
      const end = newline < 0 ? chunk.length : newline;
      if (this.#line !== null) this.#grow(chunk.subarray(at, end));
      if (newline < 0) return;
      if (this.#line !== null) this.#finish(Buffer.concat(this.#line));
      this.#line = [];
      this.#lineBytes = 0;
      at = newline + 1;
    }
  }

  #grow(part: Buffer): void {
    if (part.length === 0 || this.#line === null) return;
    // A copy: the read buffer that it is a part of must not be kept alive by a slow line.
    this.#line.push(Buffer.from(part));
    const before = this.#lineBytes;
    this.#lineBytes += part.length;
    if (
      this.#lineBytes > MAX_MARKER_LINE_BYTES ||
      (before < LONGEST_PREFIX && !couldBeMarker(Buffer.concat(this.#line)))
    )
      this.#line = null;
  }

  #finish(line: Buffer): void {
    const marker = parseMarker(line);
    if (marker) this.#found(marker);
  }
}

function couldBeMarker(beginning: Buffer): boolean {
  return PREFIXES.some((prefix) => {
    const common = Math.min(prefix.length, beginning.length);
    return prefix.compare(beginning, 0, common, 0, common) === 0;
  });
}

/** The fact that a whole line (without its break) states; null for an ordinary or malformed line. */
export function parseMarker(line: Buffer): Marker | null {
  if (!couldBeMarker(line)) return null;
  const text = line.toString("utf8");
  if (text.startsWith(UNIT_PREFIX)) return parseUnit(parseObject(text.slice(UNIT_PREFIX.length)));
  if (!text.startsWith(RL_PREFIX)) return null;
  const event = parseObject(text.slice(RL_PREFIX.length));
  return event && { type: "rl_event", event };
}

function parseUnit(value: Record<string, unknown> | null): Marker | null {
  if (!value || typeof value.id !== "string" || typeof value.ms !== "number") return null;
  const idBytes = Buffer.byteLength(value.id);
  if (idBytes === 0 || idBytes > MAX_UNIT_ID_BYTES || !Number.isFinite(value.ms) || value.ms < 0) return null;
  return { type: "unit", id: value.id, ms: value.ms };
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null; // a program may print what it likes
  }
}
