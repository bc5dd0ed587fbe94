import fc from "fast-check";
import { expect, test } from "vitest";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { nextTry, worthTelling } from "./waiting.ts";

const NOW = new Date("2026-03-01T01:00:00Z");
const waited = (ms: number) => new Date(NOW.getTime() - ms);
const waitMs = (since: Date | null, random: number) => nextTry(NOW, since, () => random).getTime() - NOW.getTime();

test("the wait is half of what it has waited, from a second to half a minute", () => {
  expect(waitMs(null, 0.5)).toBe(1_000);
  expect(waitMs(waited(500), 0.5)).toBe(1_000);
  expect(waitMs(waited(20_000), 0.5)).toBe(10_000);
  expect(waitMs(waited(3_600_000), 0.5)).toBe(30_000);
});

test("property: it is spread by a quarter to both sides and always lies ahead", () => {
  fc.assert(
    fc.property(fc.nat(10_000_000), fc.double({ min: 0, max: 0.999, noNaN: true }), (ms, random) => {
      const middle = waitMs(waited(ms), 0.5);
      const wait = waitMs(waited(ms), random);
      expect(wait).toBeGreaterThanOrEqual(Math.floor(middle * 0.75));
      expect(wait).toBeLessThanOrEqual(Math.ceil(middle * 1.25));
    }),
  );
});

test("a reason is told when it is new, not again while it stays, and after another one only once in a while", () => {
  const capacity = (ms: number) => ({ reason: "no_capacity", at: waited(ms) });
  const credit = (ms: number) => ({ reason: "insufficient_credit", at: waited(ms) });
  const whileMs = LIMITS.waitingEventMs;
  expect(worthTelling("no_capacity", [], NOW)).toBe(true);
  expect(worthTelling("no_capacity", [capacity(10 * whileMs)], NOW)).toBe(false);
  expect(worthTelling("no_capacity", [credit(1)], NOW)).toBe(true);
  expect(worthTelling("no_capacity", [capacity(whileMs - 1), credit(1)], NOW)).toBe(false);
  expect(worthTelling("no_capacity", [credit(1), capacity(whileMs)], NOW)).toBe(true);
});
