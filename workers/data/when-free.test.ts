import { setImmediate as immediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { TeamBusy } from "../../infra/db/unavailable.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { whenFree } from "./when-free.ts";

/** Something that fails with each of these in turn, and then answers how often it was tried. */
function failing(...errors: Error[]) {
  let tries = 0;
  return async () => {
    const error = errors[tries++];
    if (error) throw error;
    return tries;
  };
}

/** Lets time pass, each second after what the one before it led to. */
async function seconds(clock: FakeClock, count: number): Promise<void> {
  for (let second = 0; second < count; second++) {
    await immediate();
    await clock.advance(1_000);
  }
}

test("what waits for others is tried again until it is done", async () => {
  const clock = new FakeClock();
  const lock = Object.assign(new Error("lock timeout"), { code: "55P03" });
  const done = whenFree(clock, new AbortController().signal, failing(new TeamBusy(), lock, new TeamBusy()));
  await seconds(clock, 3);
  expect(await done).toBe(4);
});

test("any other failure is told at once", async () => {
  const signal = new AbortController().signal;
  await expect(whenFree(new FakeClock(), signal, failing(new Error("a bug")))).rejects.toThrow("a bug");
});

test("it is given up when the work is not this process's any more", async () => {
  const clock = new FakeClock();
  const work = new AbortController();
  const done = whenFree(clock, work.signal, failing(new TeamBusy(), new TeamBusy(), new TeamBusy()));
  const ended = expect(done).rejects.toThrow(TeamBusy);
  await seconds(clock, 1);
  work.abort();
  await ended;
});
