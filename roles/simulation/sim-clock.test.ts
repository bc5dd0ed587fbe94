import fc from "fast-check";
import { expect, test } from "vitest";
import { SimClock } from "./sim-clock.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("sleepers wake one at a time, in the order of their times, and equal times in the order of falling asleep", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 40 }), async (sleeps) => {
      const clock = new SimClock(new Date(0));
      const view = clock.view({ owner: {}, stepped: true });
      const woken: number[] = [];
      for (const [n, ms] of sleeps.entries()) void view.sleep(ms).then(() => woken.push(n));
      while (clock.nextDueMs() < Number.POSITIVE_INFINITY) {
        const before = woken.length;
        clock.wakeNext();
        await turn();
        expect(woken.length).toBe(before + 1);
      }
      const order = sleeps.map((ms, n) => ({ ms, n })).sort((a, b) => a.ms - b.ms || a.n - b.n);
      expect(woken).toEqual(order.map(({ n }) => n));
      expect(clock.nowMs).toBe(Math.max(0, ...sleeps));
    }),
  );
});

test("an aborted sleep ends at once and is not waited for any more", async () => {
  const clock = new SimClock(new Date(0));
  const abort = new AbortController();
  const slept = clock.view({ owner: {}, stepped: true }).sleep(1_000, abort.signal);
  abort.abort();
  await slept;
  expect(clock.nextDueMs()).toBe(Number.POSITIVE_INFINITY);
});

test("who is forgotten never wakes, whatever is aborted, and never falls asleep again", async () => {
  const clock = new SimClock(new Date(0));
  const owner = {};
  const view = clock.view({ owner, stepped: true });
  const abort = new AbortController();
  let woken = 0;
  for (const sleep of [view.sleep(5), view.sleep(10, abort.signal)]) void sleep.then(() => woken++);
  clock.forget(owner);
  void view.sleep(1).then(() => woken++);
  abort.abort();
  await turn();
  expect(clock.nextDueMs()).toBe(Number.POSITIVE_INFINITY);
  expect(woken).toBe(0);
});

test("a step moves the wall clock of those who look at it, and nobody's monotonic clock", () => {
  const clock = new SimClock(new Date(1_000));
  const platform = clock.view({ owner: {}, stepped: true });
  const host = clock.view({ owner: {}, stepped: false, skewMs: -7 });
  clock.stepWall(500);
  expect([platform.now().getTime(), host.now().getTime()]).toEqual([1_500, 993]);
  expect([platform.monotonicMs(), host.monotonicMs()]).toEqual([1_000, 1_000]);
});
