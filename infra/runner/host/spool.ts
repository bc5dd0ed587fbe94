import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { LIMITS } from "../../kernel/limits.ts";
import type { ExitRecord, RunnerRecord } from "../protocol.ts";

/** A record that has no number yet. */
export type Unnumbered = RunnerRecord extends infer R
  ? R extends RunnerRecord
    ? Omit<R, "seq" | "at">
    : never
  : never;

/** How far a spool is on disk: what may be sent. */
export interface Durable {
  seq: number;
  /** Bytes of the file that hold records 1 to `seq`, one JSON line each. */
  bytes: number;
}

/** What a spool holds when it is opened again. */
export interface SpoolState {
  seq: number;
  bytes: number;
  logBytes: number;
  logTruncated: boolean;
  /** Wall clock of `phase: running` and of the last record; null if there is none. */
  runningAt: Date | null;
  lastAt: Date | null;
  exit: ExitRecord | null;
  /** Outputs that were dealt with, uploaded or failed. */
  outputs: Set<string>;
  ended: boolean;
}

export interface SpoolOptions {
  committedLogBytes: number;
  now: () => Date;
  /** Told after each write to disk. */
  onDurable: (durable: Durable) => void;
  /** The disk refuses: nothing more will be kept. Told once. */
  onFailure: (error: Error) => void;
}

/**
 * The numbered records of one order, on disk before anybody else sees them. Writers don't wait: what is appended while
 * a write is under way goes out with the next one, so one flush serves many records.
 */
export class Spool {
  readonly #file: FileHandle;
  readonly #options: SpoolOptions;
  readonly #sha256: Hash;
  #seq: number;
  #durable: Durable;
  #lines: string[] = [];
  #log: Buffer[] = [];
  #logPendingBytes = 0;
  #logBytes: number;
  #logTruncated: boolean;
  #writing: Promise<void> | null = null;
  #failure: Error | null = null;
  #relieved: (() => void)[] = [];

  private constructor(file: FileHandle, state: SpoolState, sha256: Hash, options: SpoolOptions) {
    this.#file = file;
    this.#options = options;
    this.#sha256 = sha256;
    this.#seq = state.seq;
    this.#durable = { seq: state.seq, bytes: state.bytes };
    this.#logBytes = state.logBytes;
    this.#logTruncated = state.logTruncated;
  }

  /** Opens or creates; a line that was cut off by a crash is cut away. */
  static async open(path: string, options: SpoolOptions): Promise<{ spool: Spool; state: SpoolState }> {
    const file = await open(path, "a+", 0o600);
    const sha256 = createHash("sha256");
    const state = readSpool(await file.readFile(), sha256);
    await file.truncate(state.bytes);
    return { spool: new Spool(file, state, sha256, options), state };
  }

  get durable(): Durable {
    return this.#durable;
  }

  /** Log bytes that are not on disk yet. */
  get pendingLogBytes(): number {
    return this.#logPendingBytes;
  }

  get logBytes(): number {
    return this.#logBytes + (this.#logTruncated ? 0 : this.#logPendingBytes);
  }

  /** Redacted output. Bytes past the committed limit are dropped, once with a record that says so. */
  appendLog(bytes: Buffer): void {
    if (this.#logTruncated || this.#failure || bytes.length === 0) return;
    const room = this.#options.committedLogBytes - this.#logBytes - this.#logPendingBytes;
    const kept = bytes.length > room ? bytes.subarray(0, room) : bytes;
    if (kept.length > 0) {
      this.#log.push(kept);
      this.#logPendingBytes += kept.length;
    }
    if (kept.length < bytes.length) {
      this.#cutLog();
      this.#logTruncated = true;
      this.append({ type: "log_truncated", offset: this.#logBytes });
    }
    this.#write();
  }

  /** A fact beside the log; order against log bytes is not kept. */
  append(record: Unnumbered): void {
    if (this.#failure) return;
    this.#seq++;
    this.#lines.push(JSON.stringify({ seq: this.#seq, at: this.#options.now().toISOString(), ...record }));
    this.#write();
  }

  /** A fact that comes after every log byte so far. */
  appendAfterLog(record: Unnumbered): void {
    this.#cutLog();
    this.append(record);
  }

  /** The last record; the log's length and digest are those of everything appended. */
  appendEnd(droppedUnits: number): void {
    this.#cutLog();
    this.append({ type: "end", logBytes: this.#logBytes, logSha256: this.#sha256.copy().digest("hex"), droppedUnits });
  }

  /** Resolves when everything appended so far is on disk. Rejects when the disk refuses. */
  async flushed(): Promise<void> {
    while (this.#writing) await this.#writing;
    if (this.#failure) throw this.#failure;
  }

  /** Resolves when little enough log waits for the disk; at once if so now. */
  relieved(): Promise<void> {
    if (this.#writing === null) return Promise.resolve();
    return new Promise((resolve) => this.#relieved.push(resolve));
  }

  /** Bytes of durable records from `position`, at most `maxBytes` unless one record alone is longer. */
  async read(position: number, maxBytes: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(Math.min(maxBytes, this.#durable.bytes - position));
    const { bytesRead } = await this.#file.read(buffer, 0, buffer.length, position);
    return buffer.subarray(0, bytesRead);
  }

  async close(): Promise<void> {
    while (this.#writing) await this.#writing;
    await this.#file.close();
  }

  #cutLog(): void {
    if (this.#logPendingBytes === 0) return;
    const whole = this.#log.length === 1 ? this.#log[0]! : Buffer.concat(this.#log);
    this.#log = [];
    this.#logPendingBytes = 0;
    this.#sha256.update(whole);
    const at = this.#options.now().toISOString();
    for (let from = 0; from < whole.length; from += LIMITS.logChunkBytes) {
      const chunk = whole.subarray(from, from + LIMITS.logChunkBytes);
      this.#seq++;
      // Base64 needs no escaping: the line is put together by hand, which is what a fast log is made of.
      this.#lines.push(
        `{"seq":${this.#seq},"at":"${at}","type":"log","offset":${this.#logBytes},"data":"${chunk.toString("base64")}"}`,
      );
      this.#logBytes += chunk.length;
    }
  }

  #write(): void {
    if (this.#writing || this.#failure) return;
    this.#writing = this.#writeAll()
      .catch((error: Error) => {
        this.#failure = error;
        this.#lines = [];
        this.#log = [];
        this.#options.onFailure(error);
      })
      .finally(() => {
        this.#writing = null;
        for (const relieve of this.#relieved.splice(0)) relieve();
      });
  }

  async #writeAll(): Promise<void> {
    await null; // what is appended in the same turn goes out together
    while (this.#lines.length > 0 || this.#logPendingBytes > 0) {
      this.#cutLog();
      const text = Buffer.from(`${this.#lines.join("\n")}\n`);
      const seq = this.#seq;
      this.#lines = [];
      await this.#file.appendFile(text);
      await this.#file.datasync();
      this.#durable = { seq, bytes: this.#durable.bytes + text.length };
      for (const relieve of this.#relieved.splice(0)) relieve();
      this.#options.onDurable(this.#durable);
    }
  }
}

/** Reads as far as lines are whole and numbered without gap. */
function readSpool(content: Buffer, sha256: Hash): SpoolState {
  const state: SpoolState = {
    ...{ seq: 0, bytes: 0, logBytes: 0, logTruncated: false, runningAt: null, lastAt: null },
    ...{ exit: null, outputs: new Set<string>(), ended: false },
  };
  for (let end = content.indexOf(10); end >= 0; end = content.indexOf(10, state.bytes)) {
    let record: RunnerRecord;
    try {
      record = JSON.parse(content.toString("utf8", state.bytes, end)) as RunnerRecord;
    } catch {
      break; // torn by a crash: everything from here on was never sent
    }
    if (record.seq !== state.seq + 1) break;
    note(state, record, sha256);
    state.seq = record.seq;
    state.bytes = end + 1;
  }
  return state;
}

function note(state: SpoolState, record: RunnerRecord, sha256: Hash): void {
  state.lastAt = new Date(record.at);
  if (record.type === "log") {
    const bytes = Buffer.from(record.data, "base64");
    sha256.update(bytes);
    state.logBytes += bytes.length;
  } else if (record.type === "log_truncated") state.logTruncated = true;
  else if (record.type === "phase" && record.phase === "running") state.runningAt = state.lastAt;
  else if (record.type === "exit") state.exit = record;
  else if (record.type === "output" || record.type === "output_failed") state.outputs.add(record.name);
  else if (record.type === "end") state.ended = true;
}
