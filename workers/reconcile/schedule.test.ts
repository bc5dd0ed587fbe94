import { expect, test } from "vitest";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { Sleepers } from "../../infra/live/wakeups.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { type Reconciler, startReconcilers } from "./schedule.ts";

const logger = createLogger({ level: "silent", role: "test" });

function scheduled(reconcilers: Reconciler[]) {
  const clock = new FakeClock();
  const sleepers = new Sleepers(() => {});
  const wakeups = { on: (topic: string, f: () => void) => sleepers.on(topic, f) };
  const schedule = startReconcilers(reconcilers, { clock, logger, wakeups, random: () => 0.5 });
  return { clock, sleepers, schedule };
}

/** Time passes in small steps, and everything that is due has its turn. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 10) {
    await clock.advance(10);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("a reconciler runs at once, then in its interval, and one that fails is tried again", async () => {
  const runs: number[] = [];
  const { clock, schedule } = scheduled([
    {
      name: "failing",
      everyMs: 1_000,
      run: async () => {
        runs.push(clock.now().getTime());
        throw new Error("not today");
      },
    },
  ]);
  await pass(clock, 3_500);
  const [first] = runs;
  expect(runs.map((ms) => ms - first!)).toEqual([0, 1_100, 2_200, 3_300]);
  await schedule.close();
});

test("a wake-up runs it early, one that comes during a run counts, and no wake-up makes it run without a rest", async () => {
  const woken: boolean[] = [];
  let during = () => {};
  const { clock, sleepers, schedule } = scheduled([
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
  await pass(clock, 150);
  during = () => {
    sleepers.wake("t");
    during = () => {};
  };
  sleepers.wake("t");
  await pass(clock, 50);
  expect(woken).toEqual([false, true]);
  await pass(clock, 500);
  expect(woken).toEqual([false, true, true]);
  await schedule.close();
  expect(sleepers.count).toBe(0);
});
