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
  /** Monotonic. Until then something of the team is taken to be held by somebody. */
  heldUntilMs: number;
  readonly waiting: Waiting[];
}

/**
 * Shares the connections of one process's pool among teams, so that a row that somebody holds costs its own team time and
 * no other. A team's commands have half of the pool. Once one of them waited for a lock in vain, the team's commands go
 * one at a time for a while, and those of all such teams together have a quarter of the pool: as many teams as one frozen
 * process may hold rows of leave the others more than half.
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

  /** Whether a command of the team waited for a lock in vain a moment ago. */
  isHeld(teamId: string): boolean {
    const team = this.#teams.get(teamId);
    return team !== undefined && this.#held(team);
  }

  /** Runs `work` in the team's turn; `TeamBusy` when none comes in time, and nothing was done. */
  async pass<T>(teamId: string, { comesAgain }: TurnOptions, work: () => Promise<T>): Promise<T> {
    const team = this.#standing(teamId);
    if (comesAgain && this.#held(team)) throw new TeamBusy();
    const queues = team.waiting.length > 0 || !this.#mayStart(team);
    const held = queues ? await this.#turn(team) : this.#start(team);
    try {
      return await work();
    } catch (error) {
      if (isWaitForLockOver(error)) team.heldUntilMs = this.#nowMs() + LIMITS.heldTeamMs;
      throw error;
    } finally {
      team.running--;
      if (held) this.#heldRunning--;
      this.#startQueued();
      const idle = team.running === 0 && team.waiting.length === 0;
      if (idle && !this.#held(team)) this.#teams.delete(teamId);
    }
  }

  #standing(teamId: string): Standing {
    let team = this.#teams.get(teamId);
    if (!team) {
      team = { running: 0, heldUntilMs: Number.NEGATIVE_INFINITY, waiting: [] };
      this.#teams.set(teamId, team);
    }
    return team;
  }

  #held(team: Standing): boolean {
    return team.heldUntilMs > this.#nowMs();
  }

  #mayStart(team: Standing): boolean {
    return this.#held(team) ? team.running === 0 && this.#heldRunning < this.#heldShare : team.running < this.#share;
  }

  /** Counts a command that begins; true when something of its team is held. */
  #start(team: Standing): boolean {
    const held = this.#held(team);
    team.running++;
    if (held) this.#heldRunning++;
    return held;
  }

  /** Waits for the team's turn, and takes it. */
  #turn(team: Standing): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        start: () => {
          clearTimeout(timer);
          resolve(this.#start(team));
        },
      };
      const timer = setTimeout(() => {
        team.waiting.splice(team.waiting.indexOf(waiting), 1);
        if (team.waiting.length === 0) this.#queued.delete(team);
        reject(new TeamBusy());
      }, LIMITS.commandTurnMs);
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
