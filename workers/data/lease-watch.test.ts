import { expect, test } from "vitest";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { COMMON, Refused } from "../../infra/kernel/refusal.ts";
import { StaleClaim } from "../../subgraphs/data/stale-claim.ts";
import { LeaseWatch } from "./lease-watch.ts";

const LATE = new Error("its time is over");

function watched(report: (now: Date) => Promise<void>, deadlineMs = 10_000) {
  const clock = new FakeClock("2026-03-01T12:00:00Z");
  const warnings: unknown[] = [];
  const logger = { warn: (fields: unknown) => void warnings.push(fields) } as never;
  const deadlineAt = new Date(clock.now().getTime() + deadlineMs);
  const watch = new LeaseWatch({ clock, logger }, { ids: { loadId: "l" }, deadlineAt, timedOut: () => LATE, report });
  return { clock, watch, warnings };
}

test("work is reported while it is under way, and not any more once it has stopped", async () => {
  const at: string[] = [];
  const { clock, watch } = watched(async (now) => void at.push(now.toISOString().slice(17, 19)));
  for (let seconds = 0; seconds < 5; seconds++) await clock.advance(1_000);
  expect(at).toEqual(["02", "04"]);
  await watch.stop();
  await clock.advance(60_000);
  expect(at).toEqual(["02", "04"]);
  expect(watch.signal.aborted).toBe(false);
});

test("work is cut off at its deadline, which need not be at a report", async () => {
  const { clock, watch } = watched(async () => {}, 2_500);
  await clock.advance(2_000);
  await clock.advance(499);
  expect(watch.signal.aborted).toBe(false);
  await clock.advance(1);
  expect(watch.signal.reason).toBe(LATE);
  await watch.stop();
});

test("a wall clock that is set back gives work no more time, and one that is set forward takes none", async () => {
  for (const stepMs of [-3_600_000, 3_600_000]) {
    const { clock, watch } = watched(async () => {}, 2_500);
    clock.stepWall(stepMs);
    await clock.advance(2_499);
    expect(watch.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(watch.signal.reason).toBe(LATE);
    await watch.stop();
  }
});

test("work that is another's or may not go on is cut off with the reason", async () => {
  for (const reason of [new StaleClaim("load"), new Refused(COMMON.not_found)]) {
    const { clock, watch, warnings } = watched(() => Promise.reject(reason));
    await clock.advance(2_000);
    expect(watch.signal.reason).toBe(reason);
    await watch.stop();
    expect(warnings).toEqual([]);
  }
});

test("a report that does not get through is told to the log and made up for by the next", async () => {
  const broken = new Error("no database");
  let reports = 0;
  const { clock, watch, warnings } = watched(async () => {
    if (++reports === 1) throw broken;
  });
  await clock.advance(2_000);
  await clock.advance(2_000);
  expect(reports).toBe(2);
  expect(warnings).toEqual([{ err: broken, loadId: "l" }]);
  expect(watch.signal.aborted).toBe(false);
  await watch.stop();
});

test("stopping waits for a report that is under way", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { clock, watch } = watched(() => promise);
  await clock.advance(2_000);
  const order: string[] = [];
  const stopped = watch.stop().then(() => order.push("stopped"));
  await clock.advance(0);
  order.push("report ends");
  resolve();
  await stopped;
  expect(order).toEqual(["report ends", "stopped"]);
});
