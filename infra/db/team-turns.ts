import { LIMITS } from "../kernel/limits.ts";
import { TeamShares, type Turn } from "./team-shares.ts";
import { ofTeamThatWaited } from "./team-that-waited.ts";
import { isWaitForLockOver, TeamBusy } from "./unavailable.ts";

export interface TurnOptions {
  /** Whoever asks comes again by itself: it does not wait while something of its team is held. */
  comesAgain: boolean;
}

type Start = () => void;

/**
 * Lets commands of teams wait for their turn at the connections of one process's pool, so that a row that somebody holds
 * costs its own team time and leaves connections to the others. Who may begin is decided by `TeamShares`.
 */
export class TeamTurns {
  readonly #shares: TeamShares;
  readonly #nowMs: () => number;
  /** Those that wait, by team, in the order in which they came. */
  readonly #waiting = new Map<string, Start[]>();

  constructor(poolSize: number, nowMs: () => number = () => performance.now()) {
    this.#shares = new TeamShares(poolSize);
    this.#nowMs = nowMs;
  }

  /** Whether a command of the team waited for a lock in vain, and nothing says that it would not again. */
  isHeld(teamId: string): boolean {
    return this.#shares.isHeld(teamId);
  }

  /** Runs `work` in the team's turn; `TeamBusy` when none comes in time, and nothing was done. */
  async pass<T>(teamId: string, { comesAgain }: TurnOptions, work: () => Promise<T>): Promise<T> {
    const mayStart = !this.#waiting.has(teamId) && this.#shares.mayStart(teamId);
    if (comesAgain && this.isHeld(teamId) && (!mayStart || this.#shares.rests(teamId, this.#nowMs())))
      throw ofTeamThatWaited(new TeamBusy(), teamId);
    const turn = mayStart ? this.#shares.start(teamId) : await this.#turn(teamId);
    let waitedInVain = false;
    try {
      return await work();
    } catch (error) {
      waitedInVain = isWaitForLockOver(error);
      throw waitedInVain ? ofTeamThatWaited(error, teamId) : error;
    } finally {
      this.#shares.end(turn, waitedInVain, this.#nowMs());
      this.#startWaiting();
    }
  }

  /**
   * Waits for the team's turn, and takes it: as long as others wait for a connection where the team has only much to do,
   * and shortly where something of it is held.
   */
  #turn(teamId: string): Promise<Turn> {
    const lastMs = this.#nowMs() + LIMITS.databaseConnectionWaitMs;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout;
      const start = () => {
        clearTimeout(timer);
        resolve(this.#shares.start(teamId));
      };
      const look = () => {
        const leftMs = this.isHeld(teamId) ? 0 : lastMs - this.#nowMs();
        if (leftMs > 0) {
          timer = setTimeout(look, Math.min(leftMs, LIMITS.commandTurnMs));
          return;
        }
        this.#leave(teamId, start);
        reject(ofTeamThatWaited(new TeamBusy(), teamId));
      };
      timer = setTimeout(look, LIMITS.commandTurnMs);
      const others = this.#waiting.get(teamId);
      if (others) others.push(start);
      else this.#waiting.set(teamId, [start]);
    });
  }

  #leave(teamId: string, start: Start): void {
    const left = this.#waiting.get(teamId)!.filter((other) => other !== start);
    if (left.length > 0) this.#waiting.set(teamId, left);
    else this.#waiting.delete(teamId);
  }

  /** One that has ended may let another team's begin, too. */
  #startWaiting(): void {
    for (const [teamId, waiting] of this.#waiting) {
      while (waiting.length > 0 && this.#shares.mayStart(teamId)) waiting.shift()!();
      if (waiting.length === 0) this.#waiting.delete(teamId);
    }
  }
}
