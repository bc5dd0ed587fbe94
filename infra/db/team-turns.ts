import { LIMITS } from "../kernel/limits.ts";
import { isWaitForLockOver, TeamBusy } from "./unavailable.ts";

export interface TurnOptions {
  /** Whoever asks comes again by itself: it does not wait while something of its team is held. */
  comesAgain: boolean;
}

interface Waiting {
  start(): void;
}

interface Standing {
  running: number;
  /** A command waited for a lock in vain, and none has ended otherwise since `heldUntilMs`. */
  isHeld: boolean;
  /** Monotonic. Until then it is not tried whether what was held is still. */
  heldUntilMs: number;
  readonly waiting: Waiting[];
}

/**
 * Shares the connections of one process's pool among teams, so that a row that somebody holds costs its own team time and
 * no other. A team's commands have half of the pool. Once one of them waited for a lock in vain, the team's commands go
 * one at a time until one ends otherwise, a while later at the earliest, and those of all such teams together have a
 * quarter of the pool: as many teams as one frozen process may hold rows of leave the others more than half.
 */
export class TeamTurns {
  readonly #share: number;
  readonly #heldShare: number;
  readonly #nowMs: () => number;
  readonly #teams = new Map<string, Standing>();
  readonly #queued = new Set<Standing>();
  /** Commands that began while something of their team was held. */
  #heldRunning = 0;

  constructor(poolSize: number, nowMs: () => number = () => performance.now()) {
    this.#share = Math.max(1, Math.floor(poolSize / 2));
    this.#heldShare = Math.max(1, Math.floor(poolSize / 4));
    this.#nowMs = nowMs;
  }

  /** Whether a command of the team waited for a lock in vain, and nothing says that it would not again. */
  isHeld(teamId: string): boolean {
    return this.#teams.get(teamId)?.isHeld ?? false;
  }

  /** Runs `work` in the team's turn; `TeamBusy` when none comes in time, and nothing was done. */
  async pass<T>(teamId: string, { comesAgain }: TurnOptions, work: () => Promise<T>): Promise<T> {
    const team = this.#standing(teamId);
    if (comesAgain && team.isHeld && (team.running > 0 || this.#nowMs() < team.heldUntilMs)) throw new TeamBusy();
    const queues = team.waiting.length > 0 || !this.#mayStart(team);
    const startedHeld = queues ? await this.#turn(team) : this.#start(team);
    let waitedInVain = false;
    try {
      return await work();
    } catch (error) {
      waitedInVain = isWaitForLockOver(error);
      throw error;
    } finally {
      if (waitedInVain) this.#hold(team);
      else if (this.#nowMs() >= team.heldUntilMs) team.isHeld = false;
      team.running--;
      if (startedHeld) this.#heldRunning--;
      this.#startQueued();
      if (isIdle(team) && !team.isHeld) this.#teams.delete(teamId);
    }
  }

  /** Teams that ask for nothing any more are not remembered for ever, whatever was held of them. */
  #hold(team: Standing): void {
    const nowMs = this.#nowMs();
    for (const [id, other] of this.#teams)
      if (isIdle(other) && nowMs - other.heldUntilMs > LIMITS.heldTeamForgottenMs) this.#teams.delete(id);
    team.isHeld = true;
    team.heldUntilMs = nowMs + LIMITS.heldTeamMs;
  }

  #standing(teamId: string): Standing {
    let team = this.#teams.get(teamId);
    if (!team) {
      team = { running: 0, isHeld: false, heldUntilMs: Number.NEGATIVE_INFINITY, waiting: [] };
      this.#teams.set(teamId, team);
    }
    return team;
  }

  #mayStart(team: Standing): boolean {
    return team.isHeld ? team.running === 0 && this.#heldRunning < this.#heldShare : team.running < this.#share;
  }

  /** Counts a command that begins; true when something of its team is held. */
  #start(team: Standing): boolean {
    team.running++;
    if (team.isHeld) this.#heldRunning++;
    return team.isHeld;
  }

  /**
   * Waits for the team's turn, and takes it: as long as others wait for a connection where the team has only much to do,
   * and shortly where something of it is held.
   */
  #turn(team: Standing): Promise<boolean> {
    const lastMs = this.#nowMs() + LIMITS.databaseConnectionWaitMs;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout;
      const waiting: Waiting = {
        start: () => {
          clearTimeout(timer);
          resolve(this.#start(team));
        },
      };
      const look = () => {
        const leftMs = team.isHeld ? 0 : lastMs - this.#nowMs();
        if (leftMs > 0) {
          timer = setTimeout(look, Math.min(leftMs, LIMITS.commandTurnMs));
          return;
        }
        team.waiting.splice(team.waiting.indexOf(waiting), 1);
        if (team.waiting.length === 0) this.#queued.delete(team);
        reject(new TeamBusy());
      };
      timer = setTimeout(look, LIMITS.commandTurnMs);
      team.waiting.push(waiting);
      this.#queued.add(team);
    });
  }

  /** One that has ended may let another team's begin, too: teams of which something is held share what they may have. */
  #startQueued(): void {
    for (const team of this.#queued) {
      while (team.waiting.length > 0 && this.#mayStart(team)) team.waiting.shift()!.start();
      if (team.waiting.length === 0) this.#queued.delete(team);
    }
  }
}

function isIdle({ running, waiting }: Standing): boolean {
  return running === 0 && waiting.length === 0;
}
