import { expect, test } from "vitest";
import { eachStep } from "../../infra/db/each-step.ts";
import { ofTeamThatWaited } from "../../infra/db/team-that-waited.ts";
import { TeamBusy } from "../../infra/db/unavailable.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { Sleepers } from "../../infra/live/wakeups.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { passTime } from "../../tests/support/pass-time.ts";
import { type Reconciler, type ScheduleOptions, startReconcilers } from "./schedule.ts";

const silent = createLogger({ level: "silent", role: "test" });

function scheduled(clock: FakeClock, reconcilers: Reconciler[], told: Partial<ScheduleOptions> = {}) {
  const sleepers = new Sleepers(() => {});
  const wakeups = { on: (topic: string, f: () => void) => sleepers.on(topic, f) };
  const schedule = startReconcilers(reconcilers, { clock, logger: silent, wakeups, random: () => 0.5, ...told });
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

test("each round says once how many steps wait for what others hold, and that is no failure", async () => {
  const clock = new FakeClock();
  const lines: Record<string, unknown>[] = [];
  const line = (level: string) => (fields: object, message: string) => lines.push({ level, message, ...fields });
  const counted: Record<string, number> = {};
  const busy = (teamId: string) => () => Promise.reject(ofTeamThatWaited(new TeamBusy(), teamId));
  const broken = () => Promise.reject(new Error("not today"));
  const reconciler = (name: string, steps: (() => Promise<unknown>)[]) => ({
    ...{ name, everyMs: 1_000, run: () => eachStep(steps) },
  });
  const { schedule } = scheduled(
    clock,
    [reconciler("held", [busy("a"), async () => {}, busy("b")]), reconciler("both", [broken, busy("c")])],
    {
      logger: { warn: line("warn"), error: line("error") } as never,
      onHeld: (name, steps) => {
        counted[name] = (counted[name] ?? 0) + steps;
      },
    },
  );
  await passTime(clock, 1_150);
  await schedule.close();
  const waits = (name: string, steps: number, teamId: string) =>
    expect.objectContaining({ level: "warn", reconciler: name, steps, teamId });
  const failed = expect.objectContaining({ level: "error", reconciler: "both" });
  const aRound = [waits("held", 2, "a"), failed, waits("both", 1, "c")];
  expect(lines).toHaveLength(2 * aRound.length);
  expect(lines).toEqual(expect.arrayContaining(aRound));
  expect(counted).toEqual({ held: 4, both: 2 });
});
