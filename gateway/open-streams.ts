import { Refused } from "../infra/kernel/refusal.ts";
import { GATEWAY } from "./refusals.ts";

/** What carries a stream: a WebSocket with all that runs on it, server-sent events, or bytes that REST takes or gives. */
export const STREAM_KINDS = ["socket", "events", "bytes"] as const;
export type StreamKind = (typeof STREAM_KINDS)[number];

/** How many streams one gateway holds open. */
export interface StreamLimits {
  /** Of one team, over all its keys. */
  readonly perTeam: number;
  /** Of everybody who has not shown a good key, together. */
  readonly withoutKey: number;
}

/** One stream that counts until it is closed. */
export interface OpenStream {
  /** A good key was shown: counts for its team from now on. Throws `too_many_streams`, and stays nobody's then. */
  belongsTo(tenantId: string): void;
  /** Counts no longer; a second call does nothing. */
  close(): void;
}

/** When a stream that was refused may be tried again: others rarely end at once. */
const RETRY_AFTER_SECONDS = 5;

/**
 * The streams of one gateway, whatever carries them. Each holds a connection and memory, so a team has a number of them of
 * its own. Callers without a key share one number, and the oldest of them gives way to the newest: whoever is about to show
 * a key gets in however many others never do.
 */
export class OpenStreams {
  readonly limits: StreamLimits;
  readonly #byKind: Record<StreamKind, number> = { socket: 0, events: 0, bytes: 0 };
  readonly #byTeam = new Map<string, number>();
  /** Oldest first. */
  readonly #withoutKey = new Map<OpenStream, () => void>();

  constructor(limits: StreamLimits) {
    this.limits = limits;
  }

  /** Counts a stream of a team. Throws `too_many_streams`. */
  open(kind: StreamKind, tenantId: string): OpenStream {
    const stream = this.#count(kind);
    try {
      stream.belongsTo(tenantId);
    } catch (error) {
      stream.close();
      throw error;
    }
    return stream;
  }

  /** Counts a stream whose caller has shown no key so far. `giveWay` must end it: another one has taken its place. */
  openWithoutKey(kind: StreamKind, giveWay: () => void): OpenStream {
    const oldest = this.#withoutKey.entries().next().value;
    if (oldest && this.#withoutKey.size >= this.limits.withoutKey) {
      this.#withoutKey.delete(oldest[0]); // it is told once
      oldest[1]();
    }
    const stream = this.#count(kind);
    this.#withoutKey.set(stream, giveWay);
    return stream;
  }

  /** How many are open, by what carries them. */
  get byKind(): Readonly<Record<StreamKind, number>> {
    return { ...this.#byKind };
  }

  /** How many are open whose callers have shown no key. */
  get withoutKey(): number {
    return this.#withoutKey.size;
  }

  /** How many a team has open. */
  ofTeam(tenantId: string): number {
    return this.#byTeam.get(tenantId) ?? 0;
  }

  #count(kind: StreamKind): OpenStream {
    let team: string | null = null;
    let isOpen = true;
    this.#byKind[kind]++;
    const stream: OpenStream = {
      belongsTo: (tenantId) => {
        if (!isOpen || team !== null) return; // gone while its key was looked up
        this.#enter(tenantId);
        team = tenantId;
        this.#withoutKey.delete(stream);
      },
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        this.#byKind[kind]--;
        this.#withoutKey.delete(stream);
        if (team !== null) this.#leave(team);
      },
    };
    return stream;
  }

  #enter(tenantId: string): void {
    const open = this.ofTeam(tenantId);
    const limit = this.limits.perTeam;
    if (open >= limit)
      throw new Refused(GATEWAY.too_many_streams, {
        message: `${GATEWAY.too_many_streams.message} The limit is ${limit}.`,
        retryAfterSeconds: RETRY_AFTER_SECONDS,
        extra: { limit, seen: open + 1 },
      });
    this.#byTeam.set(tenantId, open + 1);
  }

  #leave(tenantId: string): void {
    const left = this.ofTeam(tenantId) - 1;
    if (left > 0) this.#byTeam.set(tenantId, left);
    else this.#byTeam.delete(tenantId);
  }
}
