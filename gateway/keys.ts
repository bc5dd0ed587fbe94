import { hash } from "node:crypto";
import type { FastifyBaseLogger } from "fastify";
import type { Actor } from "../infra/kernel/actor.ts";
import type { Clock } from "../infra/kernel/clock.ts";
import { LIMITS } from "../infra/kernel/limits.ts";
import { COMMON, Refused } from "../infra/kernel/refusal.ts";
import { BoundedMap } from "./bounded-map.ts";

/** Finds who a key belongs to; null for a key that is unknown, revoked or expired. Rejects when it cannot be known. */
export type ResolveActor = (apiKey: string) => Promise<Actor | null>;

interface Entry {
  readonly apiKey: string;
  readonly actor: Promise<Actor | null>;
  /** Null for a key that nobody knows; undefined until the look-up has ended. */
  keyId: string | null | undefined;
  /** Monotonic. */
  staleAtMs: number;
}

/** A stream that ends with its key. */
interface Watch {
  readonly apiKey: string | null;
  readonly end: () => void;
}

class TooSlow extends Error {
  override readonly name = "TooSlow";

  constructor() {
    super(`the look-up of a key took more than ${LIMITS.keyLookUpMs} ms`);
  }
}

/** How long a key that nobody knows is not looked up again: a new key must work soon. */
const UNKNOWN_KEY_MS = 1_000;
const MAX_KEYS = 10_000;
const MAX_KEY_LENGTH = 512;

/** The keys in use: who they belong to, for a few seconds without asking again, and the streams that live by them. */
export class Keys {
  readonly #resolve: ResolveActor;
  readonly #clock: Clock;
  readonly #log: FastifyBaseLogger;
  readonly #cacheMs: number;
  readonly #entries = new BoundedMap<string, Entry>(MAX_KEYS);
  readonly #apiKeys = new WeakMap<Actor, string>();
  readonly #watches = new Map<string, Set<Watch>>();
  #looking: AbortController | null = null;

  constructor(resolve: ResolveActor, clock: Clock, log: FastifyBaseLogger, cacheMs: number = LIMITS.actorCacheMs) {
    this.#log = log;
    this.#resolve = resolve;
    this.#clock = clock;
    this.#cacheMs = cacheMs;
  }

  /** Who a key belongs to; refused as `unauthorized`, or as `unavailable` when that can't be known just now. */
  async actorFor(apiKey: string): Promise<Actor> {
    if (apiKey === "" || apiKey.length > MAX_KEY_LENGTH) throw new Refused(COMMON.unauthorized);
    const actor = await this.#lookUp(apiKey);
    if (!actor) throw new Refused(COMMON.unauthorized);
    return actor;
  }

  /** To be called when a key was revoked or changed: forgets it and ends its streams. */
  revoked(keyId: string): void {
    for (const entry of [...this.#entries.values()]) {
      const mayBeIt = entry.keyId === undefined || entry.keyId === keyId;
      if (mayBeIt) this.#entries.delete(digest(entry.apiKey));
    }
    for (const watch of [...(this.#watches.get(keyId) ?? [])]) watch.end();
  }

  /** To be called when some key was revoked or changed, nobody knows which: nothing is believed any more, and streams are checked. */
  changed(): void {
    this.#entries.clear();
    for (const watches of [...this.#watches.values()]) void this.#endIfGone([...watches]);
  }

  /** Calls `end` when the actor's key is revoked or expires; gives back how to stop watching. */
  watch(actor: Actor, end: () => void): () => void {
    const watch: Watch = { apiKey: this.#apiKeys.get(actor) ?? null, end };
    const watches = this.#watches.get(actor.keyId) ?? new Set<Watch>();
    this.#watches.set(actor.keyId, watches);
    watches.add(watch);
    if (!this.#looking) void this.#lookAgain();
    return () => {
      watches.delete(watch);
      if (watches.size === 0 && this.#watches.get(actor.keyId) === watches) this.#watches.delete(actor.keyId);
      if (this.#watches.size === 0) this.#looking?.abort();
    };
  }

  /** Stops looking after keys; streams that are still open no longer end with them. */
  close(): void {
    this.#watches.clear();
    this.#looking?.abort();
  }

  /** Streams that live by a key at the moment. */
  get watched(): number {
    let count = 0;
    for (const watches of this.#watches.values()) count += watches.size;
    return count;
  }

  async #lookUp(apiKey: string): Promise<Actor | null> {
    const key = digest(apiKey);
    const nowMs = this.#clock.monotonicMs();
    let entry = this.#entries.get(key);
    if (!entry || entry.staleAtMs <= nowMs) {
      entry = { apiKey, actor: this.#resolve(apiKey), keyId: undefined, staleAtMs: nowMs + this.#cacheMs };
      this.#entries.set(key, entry);
    }
    try {
      const actor = await this.#inTime(entry);
      entry.keyId = actor?.keyId ?? null;
      if (actor) this.#apiKeys.set(actor, apiKey);
      else entry.staleAtMs = Math.min(entry.staleAtMs, nowMs + UNKNOWN_KEY_MS);
      return actor;
    } catch (error) {
      // A look-up that goes on may still answer whoever asks next; one that never ends is replaced when it is stale.
      if (!(error instanceof TooSlow) && this.#entries.get(key) === entry) this.#entries.delete(key);
      this.#log.error({ err: error }, "a key could not be checked");
      throw new Refused(COMMON.unavailable, {
        message: "The key can't be checked just now.",
        retryAfterSeconds: 1,
      });
    }
  }

  /** What the look-up finds; `TooSlow` when that takes longer than a request should wait, as with a database that hangs. */
  async #inTime({ actor, keyId }: Entry): Promise<Actor | null> {
    if (keyId !== undefined) return actor;
    const answered = new AbortController();
    const late = this.#clock.sleep(LIMITS.keyLookUpMs, answered.signal).then(() => {
      if (!answered.signal.aborted) throw new TooSlow();
      return null;
    });
    try {
      return await Promise.race([actor, late]);
    } finally {
      answered.abort();
    }
  }

  /** While streams are open: asks again whether their keys still hold, as a notice of a revocation may be lost. */
  async #lookAgain(): Promise<void> {
    const looking = new AbortController();
    this.#looking = looking;
    for (;;) {
      await this.#clock.sleep(this.#cacheMs, looking.signal);
      if (looking.signal.aborted) break;
      await Promise.all([...this.#watches.values()].map((watches) => this.#endIfGone([...watches])));
    }
    if (this.#looking === looking) this.#looking = null;
    if (this.#watches.size > 0 && !this.#looking) void this.#lookAgain();
  }

  async #endIfGone(watches: Watch[]): Promise<void> {
    const apiKey = watches.find((watch) => watch.apiKey !== null)?.apiKey;
    if (!apiKey) return; // made in this process from an actor of its own
    try {
      if (await this.#lookUp(apiKey)) return;
    } catch {
      return; // not knowing is no proof that the key is gone
    }
    for (const watch of watches) watch.end();
  }
}

/** The API key of an Authorization header: `Bearer nk_…`. Null when there is none. */
export function bearerKey(header: string | undefined): string | null {
  const match = header === undefined ? null : /^Bearer +(\S+) *$/i.exec(header);
  return match ? match[1]! : null;
}

/** Keys are remembered by digest: a dump of the map's keys tells nobody a key. */
function digest(apiKey: string): string {
  return hash("sha256", apiKey, "base64");
}
