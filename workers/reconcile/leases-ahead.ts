/** A generation's lease as it was read. */
export interface Lease {
  /** The placement. */
  id: string;
  tenantId: string;
  expiresAt: Date;
}

/**
 * Leases that end farther ahead than one can be given now, and since when this process has seen each of them stand as it
 * is. They are from before the clock was set back, or from a machine whose clock is ahead: neither says whether the host
 * lives, but a host that lives changes its lease with every beat.
 */
export class LeasesAhead {
  #seen = new Map<string, { expiresAtMs: number; sinceMs: number }>();

  /** Takes in what is ahead now, all of it; answers those that have stood still for `leaseMs`, told by monotonic time. */
  unchanged(ahead: readonly Lease[], leaseMs: number, monotonicMs: number): Lease[] {
    const seen = new Map(
      ahead.map(({ id, expiresAt }) => {
        const before = this.#seen.get(id);
        const isSame = before?.expiresAtMs === expiresAt.getTime();
        return [id, isSame ? before! : { expiresAtMs: expiresAt.getTime(), sinceMs: monotonicMs }];
      }),
    );
    this.#seen = seen;
    return ahead.filter(({ id }) => monotonicMs - seen.get(id)!.sinceMs > leaseMs);
  }
}
