import { LIMITS } from "./limits.ts";

interface Waiting<A, R> {
  readonly asked: A;
  resolve(answer: R): void;
  reject(error: unknown): void;
}

/**
 * Does together what is asked for at the same time: whatever comes while earlier groups are under way is one group, in
 * the order in which it came. Nothing waits for company: an idle gathering starts with what this turn of the event loop
 * brings. A group that fails, fails for each of its members.
 */
export class Gathering<A, R> {
  readonly #work: (asked: readonly A[]) => Promise<readonly R[]>;
  readonly #atOnce: number;
  readonly #most: number;
  #underWay = 0;
  #starting = false;
  #waiting: Waiting<A, R>[] = [];

  /** `work` answers its arguments one for one; at most `atOnce` groups of at most `most` members are under way. */
  constructor(
    work: (asked: readonly A[]) => Promise<readonly R[]>,
    { atOnce = LIMITS.groupsAtOnce, most = LIMITS.groupMembers }: { atOnce?: number; most?: number } = {},
  ) {
    this.#work = work;
    this.#atOnce = atOnce;
    this.#most = most;
  }

  join(asked: A): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, resolve, reject });
      this.#startSoon();
    });
  }

  /** Whoever was answered in this turn may ask again in it, and is then in the same group. */
  #startSoon(): void {
    if (this.#starting || this.#underWay >= this.#atOnce || this.#waiting.length === 0) return;
    this.#starting = true;
    setImmediate(() => {
      this.#starting = false;
      void this.#run(this.#waiting.splice(0, this.#most));
    });
  }

  async #run(group: readonly Waiting<A, R>[]): Promise<void> {
    this.#underWay++;
    this.#startSoon(); // for those that did not fit
    try {
      const answers = await this.#work(group.map(({ asked }) => asked));
      if (answers.length !== group.length) throw new Error(`${answers.length} answers to ${group.length} members`);
      for (const [i, { resolve }] of group.entries()) resolve(answers[i]!);
    } catch (error) {
      for (const { reject } of group) reject(error);
    } finally {
      this.#underWay--;
      this.#startSoon();
    }
  }
}
