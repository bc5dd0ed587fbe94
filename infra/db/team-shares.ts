import { LIMITS } from "../kernel/limits.ts";

/** A command that runs. */
export interface Turn {
  readonly teamId: string;
  /** The wait in vain that its team was held for when it began; null when nothing was. */
  readonly heldSinceMs: number | null;
}

interface Standing {
  running: number;
  /** Monotonic time of the last wait in vain; null when nothing says that the next one would be. */
  heldSinceMs: number | null;
  /** Commands that a held team may have at once. */
  width: number;
}

/** How long after the last wait in vain a team is held at least: what began to wait with that one has been told by then. */
const LIFTED_AFTER_MS = LIMITS.heldTeamMs + LIMITS.requestLockWaitMs;

/**
 * Who may have how many of one process's connections for commands. A team may have one more as long as it has fewer than
 * are left, so that one team has half of them, two a third each, and a team that has none finds one. A team is held once
 * one of its commands waited for a lock in vain; all held teams together share a quarter of the connections in the same
 * way. A held team has one command at a time, after `LIMITS.heldTeamMs` twice as many with each that did not wait in vain,
 * and is held no more when one of those ends `LIFTED_AFTER_MS` after the last wait in vain. Times are monotonic.
 */
export class TeamShares {
  readonly #connections: number;
  readonly #heldConnections: number;
  readonly #teams = new Map<string, Standing>();
  #running = 0;
  /** Commands that began while their team was held. */
  #heldRunning = 0;

  constructor(connections: number) {
    this.#connections = connections;
    this.#heldConnections = Math.max(1, Math.floor(connections / 4));
  }

  isHeld(teamId: string): boolean {
    return this.#of(teamId).heldSinceMs !== null;
  }

  /** Whether a wait in vain is so short ago that trying the same again is of no use. */
  rests(teamId: string, nowMs: number): boolean {
    const { heldSinceMs } = this.#of(teamId);
    return heldSinceMs !== null && nowMs < heldSinceMs + LIMITS.heldTeamMs;
  }

  mayStart(teamId: string): boolean {
    const { running, heldSinceMs, width } = this.#of(teamId);
    const left = this.#connections - this.#running;
    if (heldSinceMs === null) return running < left;
    return running < Math.min(width, left, this.#heldConnections - this.#heldRunning);
  }

  start(teamId: string): Turn {
    const team = this.#of(teamId);
    this.#teams.set(teamId, team);
    team.running++;
    this.#running++;
    if (team.heldSinceMs !== null) this.#heldRunning++;
    return { teamId, heldSinceMs: team.heldSinceMs };
  }

  /** A command has ended, and waited for a lock in vain or not. */
  end({ teamId, heldSinceMs }: Turn, waitedInVain: boolean, nowMs: number): void {
    const team = this.#of(teamId);
    team.running--;
    this.#running--;
    if (heldSinceMs !== null) this.#heldRunning--;
    if (waitedInVain) {
      this.#forgetLongHeld(nowMs);
      team.heldSinceMs = nowMs;
      team.width = 1;
    } else if (heldSinceMs !== null && heldSinceMs === team.heldSinceMs) widen(team, heldSinceMs, nowMs);
    if (team.running === 0 && team.heldSinceMs === null) this.#teams.delete(teamId);
  }

  #of(teamId: string): Standing {
    return this.#teams.get(teamId) ?? { running: 0, heldSinceMs: null, width: 1 };
  }

  /** Teams that ask for nothing any more are not remembered for ever, whatever was held of them. */
  #forgetLongHeld(nowMs: number): void {
    for (const [id, { running, heldSinceMs }] of this.#teams)
      if (running === 0 && heldSinceMs !== null && nowMs - heldSinceMs > LIMITS.heldTeamForgottenMs)
        this.#teams.delete(id);
  }
}

/** A command may have needed nothing that is held, so what ends well is believed little by little. */
function widen(team: Standing, heldSinceMs: number, nowMs: number): void {
  if (nowMs >= heldSinceMs + LIFTED_AFTER_MS) team.heldSinceMs = null;
  else if (nowMs >= heldSinceMs + LIMITS.heldTeamMs) team.width *= 2;
}
