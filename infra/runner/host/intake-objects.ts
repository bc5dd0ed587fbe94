import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { setTimeout as sleep } from "node:timers/promises";

const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 3_000;

/** How an order's bytes are fetched from intake and put there. */
export interface ObjectAccess {
  orderId: string;
  session: string;
  /** Base URL of intake as of now; it may change while the platform restarts. */
  intakeUrl(): string;
}

export interface StoredObject {
  sha256: string;
  bytes: number;
}

/** Intake said no, or other bytes came than were meant: trying again is pointless. */
class ObjectFailure extends Error {}

/**
 * Fetches an object into a file. Tries again while intake is away, also when it goes away in the middle; what is in the
 * file afterwards is what its digest says. Throws `ObjectFailure`, or when `signal` aborts.
 */
export function download(from: ObjectAccess, object: StoredObject, file: string, signal: AbortSignal): Promise<void> {
  return untilAnswered(signal, async () => {
    const response = await fetch(urlOf(from, object.sha256), { headers: authorization(from), signal });
    if (!response.ok) return refuse(response);
    const counted = new Counted(object.bytes);
    const body = Readable.fromWeb(response.body as ReadableStream);
    await pipeline(body, counted, createWriteStream(file), { signal });
    const came = counted.result();
    if (came.bytes !== object.bytes) throw new ObjectFailure(`${came.bytes} bytes came instead of ${object.bytes}`);
    if (came.sha256 !== object.sha256) throw new ObjectFailure("its SHA-256 differs from the announced one");
  });
}

/** Puts content at intake. @param open gives it anew for each attempt */
export function upload(to: ObjectAccess, open: () => Promise<Readable>, signal: AbortSignal): Promise<StoredObject> {
  return untilAnswered(signal, async () => {
    const counted = new Counted(Number.POSITIVE_INFINITY);
    // Fails with the request when that fails, and the request with it; the request's error is the one that counts.
    const feeding = pipeline(await open(), counted).catch(() => {});
    const request = {
      method: "PUT",
      headers: { ...authorization(to), "content-type": "application/octet-stream" },
      body: counted,
      duplex: "half",
      signal,
    };
    try {
      const response = await fetch(urlOf(to), request as unknown as RequestInit);
      if (!response.ok) return await refuse(response);
      const stored = (await response.json()) as StoredObject;
      const sent = counted.result();
      if (sent.sha256 !== stored.sha256 || sent.bytes !== stored.bytes)
        throw new ObjectFailure("other bytes were stored than were sent");
      return sent;
    } finally {
      counted.destroy();
      await feeding;
    }
  });
}

/** Repeats until there is an answer that stays: intake may be away for as long as the guest's lease allows. */
async function untilAnswered<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(LAST_RETRY_MS, waitMs * 2)) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof ObjectFailure || signal.aborted || isLocal(error)) throw error;
    }
    await sleep(waitMs, undefined, { signal });
  }
}

/** A full disk or an unreadable file here is no fault of the connection. */
function isLocal(error: unknown): boolean {
  const { code, path } = error as NodeJS.ErrnoException;
  return path !== undefined || code === "ENOSPC";
}

async function refuse(response: Response): Promise<never> {
  const text = (await response.text()).slice(0, 200);
  const passing = response.status >= 500 || response.status === 408 || response.status === 429;
  const message = `intake answered ${response.status}${text && `: ${text}`}`;
  throw passing ? new Error(message) : new ObjectFailure(message);
}

function urlOf(access: ObjectAccess, sha256?: string): string {
  const objects = `${access.intakeUrl()}/orders/${encodeURIComponent(access.orderId)}/objects`;
  return sha256 === undefined ? objects : `${objects}/${sha256}`;
}

function authorization(access: ObjectAccess): { authorization: string } {
  return { authorization: `Bearer ${access.session}` };
}

/** Passes bytes on, counts and digests them, and fails as soon as there are too many. */
class Counted extends Transform {
  readonly #limit: number;
  readonly #hash = createHash("sha256");
  #bytes = 0;

  constructor(limit: number) {
    super();
    this.#limit = limit;
  }

  override _transform(
    chunk: Buffer,
    _encoding: BufferEncoding,
    done: (error: Error | null, chunk?: Buffer) => void,
  ): void {
    this.#hash.update(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes > this.#limit) done(new ObjectFailure(`more than the announced ${this.#limit} bytes came`));
    else done(null, chunk);
  }

  result(): StoredObject {
    return { sha256: this.#hash.digest("hex"), bytes: this.#bytes };
  }
}
