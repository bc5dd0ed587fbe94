import { Newcomers } from "../infra/net/newcomers.ts";
import { TeamStreams } from "./team-streams.ts";

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
  /**
   * Counts an operation on it, begun by a message of so many bytes, until what it gives back is called. Throws
   * `too_many_team_operations` or `team_operations_too_large`; without a team nothing is counted.
   */
  begin(bytes: number): () => void;
  /** Counts no longer; a second call does nothing. */
  close(): void;
}

/**
 * The streams of one gateway, whatever carries them. Each holds a connection and memory, so a team has a number of them of
 * its own. Callers without a key share one number, and the oldest of them gives way to the newest: whoever is about to show
 * a key gets in however many others never do.
 */
export class OpenStreams {
  readonly limits: StreamLimits;
  readonly #byKind: Record<StreamKind, number> = { socket: 0, events: 0, bytes: 0 };
  readonly #byTeam = new Map<string, TeamStreams>();
  readonly #withoutKey: Newcomers;

  constructor(limits: StreamLimits) {
    this.limits = limits;
    this.#withoutKey = new Newcomers(limits.withoutKey);
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
    return this.#count(kind, this.#withoutKey.enter(giveWay));
  }

  /** How many are open, by what carries them. */
  get byKind(): Readonly<Record<StreamKind, number>> {
    return { ...this.#byKind };
  }

  /** How many are open whose callers have shown no key. */
  get withoutKey(): number {
    return this.#withoutKey.count;
  }

  /** How many a team has open. */
  ofTeam(tenantId: string): number {
    return this.#byTeam.get(tenantId)?.streams ?? 0;
  }

  /** How many operations run on a team's streams. */
  operationsOfTeam(tenantId: string): number {
    return this.#byTeam.get(tenantId)?.operations ?? 0;
  }

  #count(kind: StreamKind, isKnownOrGone: () => void = () => {}): OpenStream {
    let team: string | null = null;
    let isOpen = true;
    this.#byKind[kind]++;
    return {
      belongsTo: (tenantId) => {
        if (!isOpen || team !== null) return; // gone while its key was looked up
        const entered = this.#byTeam.get(tenantId) ?? new TeamStreams(this.limits.perTeam);
        entered.enter();
        this.#byTeam.set(tenantId, entered);
        team = tenantId;
        isKnownOrGone();
      },
      begin: (bytes) => (team === null ? () => {} : this.#begin(team, bytes)),
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        this.#byKind[kind]--;
        isKnownOrGone();
        if (team !== null) this.#leave(team);
      },
    };
  }

  #begin(tenantId: string, bytes: number): () => void {
    const team = this.#byTeam.get(tenantId);
    if (!team) return () => {}; // the stream has gone, and nothing will run
    team.begin(bytes);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      team.end(bytes);
      this.#forgetIdle(tenantId, team);
    };
  }

  #leave(tenantId: string): void {
    const team = this.#byTeam.get(tenantId)!;
    team.leave();
    this.#forgetIdle(tenantId, team);
  }

  /** What still runs on streams that have gone counts for those that come. */
  #forgetIdle(tenantId: string, team: TeamStreams): void {
    if (team.isIdle) this.#byTeam.delete(tenantId);
  }
}
