import { describe, expect, test } from "vitest";
import { FakeClock, systemClock } from "./clock.ts";

describe("a fake clock", () => {
  test("wakes sleepers in the order of their due time, each at its own time", async () => {
    const clock = new FakeClock("2026-01-01T00:00:00Z");
    const woken: [string, string][] = [];
    const sleeper = async (name: string, ms: number) => {
      await clock.sleep(ms);
      woken.push([name, clock.now().toISOString()]);
    };
    const all = Promise.all([sleeper("late", 3_000), sleeper("soon", 1_000), sleeper("next", 2_000)]);
    await clock.advance(10_000);
    await all;
    expect(woken).toEqual([
      ["soon", "2026-01-01T00:00:01.000Z"],
      ["next", "2026-01-01T00:00:02.000Z"],
      ["late", "2026-01-01T00:00:03.000Z"],
    ]);
    expect(clock.now().toISOString()).toBe("2026-01-01T00:00:10.000Z");
  });

  test("lets a loop that sleeps again run its full course within one advance", async () => {
    const clock = new FakeClock();
    let rounds = 0;
    const loop = (async () => {
      for (; rounds < 5; rounds++) await clock.sleep(1_000);
    })();
    await clock.advance(5_000);
    await loop;
    expect(rounds).toBe(5);
  });

  test("does not wake a sleeper before its time, and an abort wakes it at once", async () => {
    const clock = new FakeClock();
    const abort = new AbortController();
    let awake = false;
    const sleep = clock.sleep(1_000, abort.signal).then(() => {
      awake = true;
    });
    await clock.advance(999);
    expect(awake).toBe(false);
    abort.abort();
    await sleep;
    expect(awake).toBe(true);
  });
});

describe("the system's clock", () => {
  test("an aborted sleep ends at once and leaves no listener", async () => {
    const abort = new AbortController();
    const sleep = systemClock.sleep(60_000, abort.signal);
    abort.abort();
    await sleep;
    await systemClock.sleep(60_000, abort.signal);
  });

  test("a sleep of more than the 24 days that one timer can count does not end at once", async () => {
    const abort = new AbortController();
    let awake = false;
    const sleep = systemClock.sleep(40 * 86_400_000, abort.signal).then(() => {
      awake = true;
    });
    await systemClock.sleep(30);
    expect(awake).toBe(false);
    abort.abort();
    await sleep;
  });
});
