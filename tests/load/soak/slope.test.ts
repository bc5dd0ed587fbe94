import fc from "fast-check";
import { expect, test } from "vitest";
import { growthPerHour } from "./slope.ts";

test("a straight line's growth is its own, whatever it starts from", () => {
  const line = fc.record({
    start: fc.integer({ min: 0, max: 1_000_000 }),
    perHour: fc.integer({ min: -1_000, max: 1_000 }),
    count: fc.integer({ min: 6, max: 50 }),
  });
  fc.assert(
    fc.property(line, ({ start, perHour, count }) => {
      const samples = Array.from({ length: count }, (_, n) => ({
        atMs: n * 60_000,
        value: start + (perHour * n) / 60,
      }));
      expect(growthPerHour(samples)).toBeCloseTo(perHour, 3);
    }),
  );
});

test("what grows at first and then stays does not grow", () => {
  const samples = Array.from({ length: 30 }, (_, n) => ({ atMs: n * 60_000, value: Math.min(n, 9) * 1_000 }));
  expect(growthPerHour(samples)).toBeCloseTo(0, 6);
});

test("too few samples say nothing", () => {
  expect(growthPerHour([{ atMs: 0, value: 1 }])).toBeNull();
  expect(growthPerHour(Array.from({ length: 6 }, () => ({ atMs: 5, value: 1 })))).toBeNull();
});
