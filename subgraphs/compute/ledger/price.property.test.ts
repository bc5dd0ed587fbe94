import fc from "fast-check";
import { expect, test } from "vitest";
import { lesserMicros } from "../../../infra/kernel/micros.ts";
import { cappedCharge, chargeFor, microsFor, type Price, runMsFor } from "./price.ts";

const price: fc.Arbitrary<Price> = fc.record({
  rateMicrosPerHour: fc.bigInt({ min: 1n, max: 1_000_000_000n }),
  feeBasisPoints: fc.integer({ min: 0, max: 10_000 }),
});
const ms = fc.integer({ min: 0, max: 400 * 24 * 3_600_000 });
const micros = fc.bigInt({ min: 0n, max: 10n ** 15n });

test("what is authorised for a time pays for all of it, at any price", () => {
  fc.assert(fc.property(price, ms, (p, time) => runMsFor(p, microsFor(p, time))! >= time));
});

test("authorised time never costs more than what was authorised", () => {
  fc.assert(
    fc.property(price, micros, (p, held) => {
      const time = Math.min(runMsFor(p, held)!, 1e15);
      expect(chargeFor(p, time).totalMicros <= held).toBe(true);
    }),
  );
});

test("more money never buys less time, and more time never costs less", () => {
  fc.assert(
    fc.property(price, micros, micros, ms, ms, (p, a, b, s, t) => {
      expect(runMsFor(p, a + b)!).toBeGreaterThanOrEqual(runMsFor(p, a)!);
      expect(chargeFor(p, s + t).totalMicros >= chargeFor(p, s).totalMicros).toBe(true);
    }),
  );
});

test("a capped charge is the cap in two parts, neither below zero nor above what it was", () => {
  fc.assert(
    fc.property(price, ms, micros, (p, time, cap) => {
      const [full, capped] = [chargeFor(p, time), cappedCharge(chargeFor(p, time), cap)];
      expect(capped.totalMicros).toBe(lesserMicros(full.totalMicros, cap));
      expect(capped.computeMicros + capped.feeMicros).toBe(capped.totalMicros);
      expect(capped.feeMicros >= 0n && capped.feeMicros <= full.feeMicros).toBe(true);
      expect(capped.computeMicros <= full.computeMicros).toBe(true);
    }),
  );
});

test("free capacity needs nothing and lasts for ever", () => {
  const free = { rateMicrosPerHour: 0n, feeBasisPoints: 1_000 };
  expect([microsFor(free, 60_000), runMsFor(free, 0n)]).toEqual([0n, null]);
});
