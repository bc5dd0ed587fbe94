import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Looks, lookAfterMs } from "./looks.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("looks are spread around their interval, and come half as often while wake-ups are healthy", () => {
  expect(lookAfterMs(2_000, false, () => 0)).toBe(1_500);
  expect(lookAfterMs(2_000, false, () => 0.5)).toBe(2_000);
  expect(lookAfterMs(2_000, false, () => 0.999)).toBeLessThan(2_500);
  expect(lookAfterMs(2_000, true, () => 0.5)).toBe(4_000);
});

test("a look comes once, not before its time and at most a tick after it", () => {
  const looks = new Looks();
  const seen: number[] = [];
  for (const ms of [0, 1, 250, 251, 999, 4_000]) looks.after(ms, () => seen.push(ms));
  vi.advanceTimersByTime(250);
  expect(seen).toEqual([0, 1, 250]);
  vi.advanceTimersByTime(750);
  expect(seen).toEqual([0, 1, 250, 251, 999]);
  vi.advanceTimersByTime(60_000);
  expect(seen).toEqual([0, 1, 250, 251, 999, 4_000]);
});

test("ten thousand looks of different topics take one timer, and none is left when all are over or taken back", () => {
  const looks = new Looks();
  let seen = 0;
  const takeBack = Array.from({ length: 10_000 }, (_, n) => looks.after(1_500 + (n % 1_000), () => seen++));
  expect(vi.getTimerCount()).toBe(1);
  for (const one of takeBack.slice(0, 5_000)) one();
  vi.advanceTimersByTime(2_500);
  expect(seen).toBe(5_000);
  expect(vi.getTimerCount()).toBe(0);
  const last = looks.after(1_000, () => seen++);
  expect(vi.getTimerCount()).toBe(1);
  last();
  last();
  expect(vi.getTimerCount()).toBe(0);
});

test("who looks again and again goes on, and who takes back a look that has come changes nothing", () => {
  const looks = new Looks();
  let seen = 0;
  let takeBack = () => {};
  const again = () => {
    seen++;
    takeBack = looks.after(1_000, again);
  };
  const first = looks.after(1_000, again);
  vi.advanceTimersByTime(1_000);
  first();
  vi.advanceTimersByTime(9_000);
  expect(seen).toBe(10);
  takeBack();
  vi.advanceTimersByTime(9_000);
  expect(seen).toBe(10);
});
