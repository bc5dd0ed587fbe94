import { type Client, PlatformLost } from "./client.ts";
import { note, type WaitLine } from "./progress.ts";

/** A place in the log of one generation of a stage. */
export interface LogPlace {
  readonly stageId: string;
  readonly generation: number;
  /** Bytes of the generation's log before it. */
  readonly bytes: number;
}

interface LogItem {
  /** With the generation null on the last item of a workload of which nothing ever ran. */
  stageId: string | null;
  generation: number | null;
  /** Where the bytes start in the generation's log. */
  offset: number;
  /** Base64. */
  data: string;
  cursor: string;
  complete: boolean;
  /** Of a generation that is over. */
  end: { truncated: boolean; tailLost: boolean } | null;
}

const LOGS = `subscription logs($id: ID!, $after: String) {
  workloadLogs(workloadId: $id, after: $after) {
    stageId generation offset data cursor complete end { truncated tailLost }
  }
}`;

/** What one reading stops at, besides the end of the log. */
export interface Reading {
  /** Stops here; only at the end of the log when there is none. */
  upTo?: LogPlace | null;
  /** How long nothing may come, in milliseconds; without end unless given. */
  silenceMs?: number;
  onItem?(): void;
}

/** Writes a log to stdout, each byte once however often it is read: it knows how far it has come. */
export class LogReader {
  readonly #client: Client;
  readonly #workloadId: string;
  readonly #line: WaitLine;
  /** Bytes of each generation that were written; more than there are once its end was told. */
  readonly #written = new Map<string, number>();
  #after: string | null = null;
  #isComplete = false;

  constructor(client: Client, workloadId: string, line: WaitLine) {
    this.#client = client;
    this.#workloadId = workloadId;
    this.#line = line;
  }

  /** The end of the log was told. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Whether everything before a place was written. */
  isPast(place: LogPlace): boolean {
    return this.#writtenOf(place) >= place.bytes;
  }

  /**
   * Goes on where it was, until the log is complete or `upTo` is reached (then true), or its stream ends before (false).
   * Throws `PlatformLost` when nothing came for `silenceMs`: what is there to be read did not come.
   */
  async read({ upTo, silenceMs, onItem }: Reading = {}): Promise<boolean> {
    const variables = { id: this.#workloadId, after: this.#after };
    const items = this.#client.subscribe<{ workloadLogs: LogItem }>(LOGS, variables);
    let isSilent = false;
    const giveUp = () => {
      isSilent = true;
      void items.return?.();
    };
    const silence = silenceMs === undefined ? undefined : setTimeout(giveUp, silenceMs);
    try {
      for await (const { workloadLogs: item } of items) {
        silence?.refresh();
        this.#write(item);
        onItem?.();
        this.#isComplete = item.complete;
        if (item.complete || (upTo && this.isPast(upTo))) return true;
      }
    } finally {
      clearTimeout(silence);
    }
    if (isSilent) throw new PlatformLost(`Nothing of the log came for ${silenceMs! / 1000} seconds.`);
    return false;
  }

  #write({ stageId, generation, offset, data, cursor, end }: LogItem): void {
    this.#line.clear();
    this.#after = cursor;
    if (stageId === null || generation === null) return;
    const written = this.#writtenOf({ stageId, generation });
    const bytes = Buffer.from(data, "base64");
    process.stdout.write(bytes.subarray(Math.max(0, written - offset)));
    const now = end ? Number.POSITIVE_INFINITY : Math.max(written, offset + bytes.length);
    this.#written.set(nameOf({ stageId, generation }), now);
    if (!end || written === Number.POSITIVE_INFINITY) return;
    if (end.truncated) note("[the log was cut off at its limit]");
    if (end.tailLost) note("[the end of the log was lost with its machine]");
  }

  #writtenOf(generation: Omit<LogPlace, "bytes">): number {
    return this.#written.get(nameOf(generation)) ?? 0;
  }
}

function nameOf({ stageId, generation }: Omit<LogPlace, "bytes">): string {
  return `${stageId}:${generation}`;
}
