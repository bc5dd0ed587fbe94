import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../kernel/limits.ts";
import type { Allowance } from "../protocol.ts";
import { Allowances } from "./allowances.ts";

const allowance = (change: Partial<Allowance> = {}): Allowance => ({
  want: "run",
  leaseMs: 90_000,
  fundedRunMs: null,
  deadlineMs: null,
  ...change,
});
const LEASE_END = 90_000 - LIMITS.leaseMarginMs;

describe("Allowances", () => {
  it("let a guest live until the lease less its margin, counted from when the host asked", () => {
    const allowances = new Allowances(allowance(), 1_000, 3_000);
    expect(allowances.stopAt(1_000 + LEASE_END - 1)).toBeNull();
    expect(allowances.stopAt(1_000 + LEASE_END)).toEqual({ killedBy: "lease", graceful: false });
  });

  it("renew the lease by answers to what was asked later, not by what nobody asked for", () => {
    const allowances = new Allowances(allowance(), 0, 0);
    allowances.update(allowance(), 50_000, 50_010);
    expect(allowances.stopAt(50_000 + LEASE_END - 1)).toBeNull();
    allowances.update(allowance(), null, 60_000);
    allowances.update(allowance(), 40_000, 60_000);
    expect(allowances.stopAt(50_000 + LEASE_END)).toMatchObject({ killedBy: "lease" });
  });

  it("keep a shorter margin for a lease that is short itself", () => {
    const allowances = new Allowances(allowance({ leaseMs: 1_000 }), 0, 0);
    expect(allowances.stopAt(899)).toBeNull();
    expect(allowances.stopAt(900)).toMatchObject({ killedBy: "lease" });
  });

  it("count funding from the start of the command, and follow it up and down", () => {
    const allowances = new Allowances(allowance({ fundedRunMs: 20_000 }), 0, 0);
    expect(allowances.stopAt(60_000)).toBeNull();
    allowances.startRunning(60_000);
    expect(allowances.stopAt(77_999)).toBeNull();
    expect(allowances.stopAt(78_000)).toEqual({ killedBy: "funding", graceful: false });
    allowances.update(allowance({ fundedRunMs: 60_000 }), 70_000, 70_000);
    expect(allowances.stopAt(78_000)).toBeNull();
    expect(allowances.nextCheckMs()).toBe(60_000 + 55_000);
  });

  it("end at the earliest deadline that was heard of", () => {
    const allowances = new Allowances(allowance({ deadlineMs: 5_000 }), 0, 100);
    allowances.update(allowance({ deadlineMs: 9_000 }), 1_000, 1_000);
    allowances.update(allowance({ deadlineMs: null }), 2_000, 2_000);
    expect(allowances.stopAt(5_099)).toBeNull();
    expect(allowances.stopAt(5_100)).toEqual({ killedBy: "deadline", graceful: false });
  });

  it("never take a want back", () => {
    const allowances = new Allowances(allowance(), 0, 0);
    allowances.update(allowance({ want: "cancel" }), null, 1);
    allowances.update(allowance({ want: "run" }), 2, 2);
    expect(allowances.stopAt(3)).toEqual({ killedBy: "cancel", graceful: true });
  });

  it("give time to save work for a cancel and a drain, and none for money or time", () => {
    const stop = (want: Allowance["want"]) => new Allowances(allowance({ want }), 0, 0).stopAt(0);
    expect(stop("drain")).toEqual({ killedBy: "drain", graceful: true });
    expect(stop("stop_budget")).toEqual({ killedBy: "funding", graceful: false });
    expect(stop("stop_deadline")).toEqual({ killedBy: "deadline", graceful: false });
  });

  it("ask to be looked at no later than the first limit ends", () => {
    const limits = fc.record({
      leaseMs: fc.integer({ min: 1, max: 1e6 }),
      fundedRunMs: fc.option(fc.nat(1e6)),
      deadlineMs: fc.option(fc.nat(1e6)),
    });
    fc.assert(
      fc.property(limits, fc.nat(1e5), (change, startedMs) => {
        const allowances = new Allowances(allowance(change), 0, 0);
        allowances.startRunning(startedMs);
        const next = allowances.nextCheckMs();
        expect(allowances.stopAt(next)).not.toBeNull();
        expect(allowances.stopAt(next - 0.001)).toBeNull();
        expect(next).toBeLessThanOrEqual(
          Math.min(change.leaseMs, startedMs + (change.fundedRunMs ?? 1e9), change.deadlineMs ?? 1e9),
        );
      }),
    );
  });
});
