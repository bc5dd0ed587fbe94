import fc from "fast-check";
import { expect, test } from "vitest";
import { backoffMs } from "./backoff.ts";

const POLICY = { firstMs: 500, longestMs: 60_000 };

test("waits double from the first one up to the longest", () => {
  const waits = [1, 2, 3, 7, 8, 9, 1_000].map((failures) => backoffMs(POLICY, failures, () => 0.999_999));
  expect(waits).toEqual([499, 999, 1_999, 31_999, 59_999, 59_999, 59_999]);
});

test("a wait is never below half of its step, never above the longest, and never less than after fewer failures", () => {
  const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2_000 }), unit, (failures, random) => {
      const waitMs = backoffMs(POLICY, failures, () => random);
      expect(waitMs).toBeGreaterThanOrEqual(250);
      expect(waitMs).toBeLessThanOrEqual(60_000);
      expect(backoffMs(POLICY, failures + 1, () => random)).toBeGreaterThanOrEqual(waitMs);
    }),
  );
});
