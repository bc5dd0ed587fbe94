import { expect, test } from "vitest";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { Sleepers } from "../../infra/live/wakeups.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { passTime } from "../../tests/support/pass-time.ts";
import { type Reconciler, startReconcilers } from "./schedule.ts";

const logger = createLogger({ level: "silent", role: "test" });

function scheduled(clock: FakeClock, reconcilers: Reconciler[]) {
  const sleepers = new Sleepers(() => {});
  const wakeups = { on: (topic: string, f: () => void) => sleepers.on(topic, f) };
  const schedule = startReconcilers(reconcilers, { clock, logger, wakeups, random: () => 0.5 });
  return { sleepers, schedule };
}

test("a reconciler runs at once, then in its interval, and one that fails is tried again", async () => {
  const runs: number[] = [];
  const clock = new FakeClock();
  const { schedule } = scheduled(clock, [
    {
      name: "failing",
      everyMs: 1_000,
      run: async () => {
        runs.push(clock.now().getTime());
        throw new Error("not today");
      },
    },
  ]);
  await passTime(clock, 3_500);
  const [first] = runs;
  expect(runs.map((ms) => ms - first!)).toEqual([0, 1_100, 2_200, 3_300]);
  await schedule.close();
});

test("a wake-up runs it early, one that comes during a run counts, and no wake-up makes it run without a rest", async () => {
  const woken: boolean[] = [];
  let during = () => {};
  const clock = new FakeClock();
  const { sleepers, schedule } = scheduled(clock, [
    {
      name: "woken",
      everyMs: 60_000,
      topic: "t",
      run: async (_, wokenAt) => {
        woken.push(wokenAt !== null);
        during();
      },
    },
  ]);
  await passTime(clock, 150);
  during = () => {
    sleepers.wake("t");
    during = () => {};
  };
  sleepers.wake("t");
  await passTime(clock, 50);
  expect(woken).toEqual([false, true]);
  await passTime(clock, 500);
  expect(woken).toEqual([false, true, true]);
  await schedule.close();
  expect(sleepers.count).toBe(0);
});
