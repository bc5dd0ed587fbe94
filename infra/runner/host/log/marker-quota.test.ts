import { describe, expect, it } from "vitest";
import { MarkerQuota } from "./marker-quota.ts";

describe("MarkerQuota", () => {
  it("counts units that come while too many wait, and takes further ones once they don't", () => {
    const quota = new MarkerQuota();
    const unit = { type: "unit", id: "u", ms: 1 } as const;
    expect(quota.admits(unit, 10_000)).toBe(true);
    expect(quota.admits(unit, 10_001)).toBe(false);
    expect(quota.admits(unit, 0)).toBe(true);
    expect(quota.droppedUnits).toBe(1);
  });

  it("takes RL events up to a number and a size, without counting them as units", () => {
    const quota = new MarkerQuota();
    const event = (text: string) => ({ type: "rl_event", event: { text } }) as const;
    const big = event("x".repeat(60_000));
    let taken = 0;
    for (let i = 0; i < 2_000; i++) if (quota.admits(big, 1e9)) taken++;
    expect(taken).toBe(Math.floor((64 * 1024 * 1024) / JSON.stringify(big.event).length));
    const small = new MarkerQuota();
    for (let i = 0; i < 100_000; i++) expect(small.admits(event(""), 0)).toBe(true);
    expect(small.admits(event(""), 0)).toBe(false);
    expect(small.droppedUnits).toBe(0);
  });
});
