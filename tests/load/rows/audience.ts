/** Counts who has heard of each workload's last event. */
export class Audience {
  readonly #share: number;
  readonly #heard = new Map<string, { cursor: number; listeners: number; told: () => void }>();

  /** @param share subscribers of each workload */
  constructor(share: number) {
    this.#share = share;
  }

  /** A subscriber of the workload got the event with this number. */
  take(workloadId: string, cursor: number): void {
    const heard = this.#of(workloadId);
    if (cursor < heard.cursor) return; // one that lags; it counts once it has the last one
    if (cursor > heard.cursor) Object.assign(heard, { cursor, listeners: 0 });
    heard.listeners++;
    if (heard.listeners === this.#share) heard.told();
  }

  /** Resolves when every subscriber of each workload has its last event. */
  async complete(workloadIds: readonly string[]): Promise<void> {
    await Promise.all(
      workloadIds.map((id) => {
        const heard = this.#of(id);
        if (heard.listeners === this.#share) return undefined;
        return new Promise<void>((resolve) => {
          heard.told = resolve;
        });
      }),
    );
  }

  /** Resolves when all subscribers of the workload have got the event that `record` makes. */
  async hears(workloadId: string, record: () => Promise<void>): Promise<void> {
    const told = new Promise<void>((resolve) => {
      this.#of(workloadId).told = resolve;
    });
    await record();
    await told;
  }

  #of(workloadId: string) {
    let heard = this.#heard.get(workloadId);
    if (!heard) {
      heard = { cursor: -1, listeners: 0, told: () => {} };
      this.#heard.set(workloadId, heard);
    }
    return heard;
  }
}
