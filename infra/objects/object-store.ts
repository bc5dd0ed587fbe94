import type { Readable } from "node:stream";

/** A stored object: named by the SHA-256 of its bytes, in lower-case hexadecimal. */
export interface StoredObject {
  sha256: string;
  bytes: number;
}

/** Bytes from `start` to `end`, both included, counted from 0; without `end` to the last one. */
export interface ByteRange {
  start: number;
  end?: number;
}

export interface OpenObject {
  /** The bytes of the range, or all. Destroy it when it is not read to its end. */
  stream: Readable;
  /** Size of the whole object. */
  bytes: number;
  /** How many bytes the stream yields. */
  streamBytes: number;
}

/** An object as a listing shows it. */
export interface ListedObject extends StoredObject {
  /** When it was put last, by the store's clock; putting an equal object renews it. */
  storedAt: Date;
}

/** Which objects a listing asks for: in the order of their names, at most `limit` of them. */
export interface ListingPage {
  /** Hexadecimal digits that the names begin with; all names when left out. */
  prefix?: string;
  /** Goes on behind this name, whether or not there is such an object. */
  after?: string | null;
  limit: number;
}

export interface PutTerms {
  maxBytes: number;
  /**
   * Called once, when all bytes are safe and their name is known, before an object of that name is there by this put: the
   * time to keep it from being removed. It may take its time. What it throws ends the put, and nothing is left.
   */
  claim?: (object: StoredObject) => Promise<void>;
}

/**
 * Where bytes live: assets, outputs, logs and checkpoints, each stored once under its content's hash. The store knows
 * nothing of owners and quotas; who may read which object is decided where it is referred to.
 */
export interface ObjectStore {
  /**
   * Stores a stream. The object is there whole, on durable storage, when this resolves; when it rejects nothing is left.
   * Equal contents may be put at the same time.
   *
   * @throws ObjectTooLarge as soon as more than `maxBytes` have come
   * @throws StorageFull when no space is left
   * @throws StoreUnavailable when the store is not on this host and cannot be reached or refuses
   * @throws whatever the stream, or the claim, failed with
   */
  put(source: AsyncIterable<Uint8Array>, terms: PutTerms): Promise<StoredObject>;
  /**
   * Opens an object for reading; null when there is none. A range that goes beyond the end is cut there.
   *
   * @throws RangeNotSatisfiable when the range starts beyond the end or is no range
   */
  open(sha256: string, range?: ByteRange): Promise<OpenObject | null>;
  has(sha256: string): Promise<boolean>;
  /** Removes an object; one that is not there counts as removed. */
  remove(sha256: string): Promise<void>;
  /** Finished objects by name. Objects that are put or removed meanwhile may or may not show. */
  list(page: ListingPage): Promise<ListedObject[]>;
  /** Removes what puts left behind that were cut short more than `olderThanMs` ago; says how many they were. */
  sweepTemp(olderThanMs: number): Promise<number>;
  /** Resolves when the store takes `probeBytes`, a few unless told; rejects with the reason otherwise. Nothing is left. */
  ping(probeBytes?: number): Promise<void>;
}

/** What a link to an object is made for. */
export interface LinkTerms {
  /** From now on; after that the store refuses it. */
  expiresInSeconds: number;
  /** What a browser saves the bytes as. */
  fileName: string;
}

/** A store that whoever has a link can read from directly, without the platform in between. */
export interface CanLink {
  /** A link that reads one object for a while. It is made whether or not there is such an object. */
  link(sha256: string, terms: LinkTerms): Promise<string>;
}

/** The stream has more bytes than the caller allows. */
export class ObjectTooLarge extends Error {
  override readonly name = "ObjectTooLarge";
  readonly maxBytes: number;

  constructor(maxBytes: number) {
    super(`the object has more than ${maxBytes} bytes`);
    this.maxBytes = maxBytes;
  }
}

/** The store has no space left. */
export class StorageFull extends Error {
  override readonly name = "StorageFull";
}

/** The store did not do what it was asked for. Its message names no address and no credential. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  /** The store's own word for it, such as `AccessDenied`, or the system's, such as `ECONNREFUSED`. */
  readonly code: string;

  constructor(operation: string, code: string, options?: ErrorOptions) {
    super(`the object store failed to ${operation} (${code})`, options);
    this.code = code;
  }
}

/** The store gave other bytes than were put under the name. */
export class ObjectDamaged extends Error {
  override readonly name = "ObjectDamaged";
}

/** The range lies outside the object. */
export class RangeNotSatisfiable extends Error {
  override readonly name = "RangeNotSatisfiable";
  /** Size of the object, for the answer's Content-Range. */
  readonly bytes: number;

  constructor(bytes: number) {
    super(`the range lies outside the object's ${bytes} bytes`);
    this.bytes = bytes;
  }
}

/** The text is not the name of any object. */
export class InvalidObjectName extends Error {
  override readonly name = "InvalidObjectName";
}

/** Refuses what is not 64 lower-case hexadecimal digits, before it becomes part of a path or a URL. */
export function requireObjectName(sha256: string): void {
  if (!/^[0-9a-f]{64}$/.test(sha256)) throw new InvalidObjectName("an object's name is 64 hexadecimal digits");
}

/** Refuses a listing's prefix that no name can have. */
export function requireNamePrefix(prefix: string): void {
  if (!/^[0-9a-f]{0,64}$/.test(prefix)) throw new InvalidObjectName("a prefix is up to 64 hexadecimal digits");
}

/** The range within an object of `bytes`, both ends included; null for no bytes of an empty object read whole. */
export function clampRange(range: ByteRange | undefined, bytes: number): { start: number; end: number } | null {
  if (!range) return bytes === 0 ? null : { start: 0, end: bytes - 1 };
  const { start, end = bytes - 1 } = range;
  const whole = Number.isSafeInteger(start) && Number.isSafeInteger(end);
  if (!whole || start < 0 || start >= bytes || end < start) throw new RangeNotSatisfiable(bytes);
  return { start, end: Math.min(end, bytes - 1) };
}
