import { expect, test } from "vitest";
import { COUNT, forEachQueueStore, NARROW } from "../../tests/support/queues.ts";
import { DONE, implementJob } from "./implement-job.ts";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

forEachQueueStore("workers of a queue", (under) => {
  test("every published job runs once, no more at a time than its definition allows", async () => {
    const ran: number[] = [];
    let running = 0;
    let most = 0;
    const job = implementJob(COUNT, async ({ n }) => {
      most = Math.max(most, ++running);
      await pause(2);
      running--;
      ran.push(n);
      return DONE;
    });
    await under.publish(100);
    const workers = under.start([job]);
    await expect.poll(() => ran.length, { timeout: 15_000 }).toBe(100);
    await workers.close();
    expect(ran.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n));
    expect(most).toBe(4);
  });

  test("jobs that share a queue keep each to its own limit", async () => {
    const most = { wide: 0, narrow: 0 };
    const running = { wide: 0, narrow: 0 };
    let ran = 0;
    const body = (kind: "wide" | "narrow") => async () => {
      most[kind] = Math.max(most[kind], ++running[kind]);
      await pause(5);
      running[kind]--;
      ran++;
      return DONE;
    };
    await under.publish(20, COUNT);
    await under.publish(10, NARROW);
    const workers = under.start([implementJob(COUNT, body("wide")), implementJob(NARROW, body("narrow"))]);
    await expect.poll(() => ran, { timeout: 15_000 }).toBe(30);
    await workers.close();
    expect(most.narrow).toBe(1);
    expect(most.wide).toBeLessThanOrEqual(4);
  });

  test("a job that fails runs again after a while, and its attempts are counted", async () => {
    const attempts: number[] = [];
    const reports: string[] = [];
    const job = implementJob(COUNT, async (_, { attempt }) => {
      attempts.push(attempt);
      if (attempt < 3) throw new Error("not yet");
      return DONE;
    });
    await under.publish(1);
    const workers = under.start([job], { onRun: (run) => reports.push(run.outcome) });
    await expect.poll(() => reports, { timeout: 15_000 }).toEqual(["failed", "failed", "done"]);
    await workers.close();
    expect(attempts).toEqual([1, 2, 3]);
  });

  test("a job runs no more often than its attempts", async () => {
    const reports: string[] = [];
    const twice = { ...COUNT, attempts: 2 };
    const job = implementJob(twice, async () => ({ outcome: "retry", reason: "never" }));
    await under.publish(1, twice);
    const workers = under.start([job], { onRun: (run) => reports.push(run.outcome) });
    await expect.poll(() => reports, { timeout: 15_000 }).toEqual(["retry", "gave_up"]);
    await pause(1_000); // longer than the wait before a third run
    await workers.close();
    expect(reports).toHaveLength(2);
  });

  test("a job that nobody here implements is left for a process that does", async () => {
    await under.publish(1, NARROW);
    const without = under.start([implementJob(COUNT, async () => DONE)]);
    await pause(200);
    await without.close();
    let ran = 0;
    const job = implementJob(NARROW, async () => {
      ran++;
      return DONE;
    });
    const withIt = under.start([job]);
    await expect.poll(() => ran, { timeout: 15_000 }).toBe(1);
    await withIt.close();
  });

  test("an implementation given twice is refused", () => {
    const job = implementJob(COUNT, async () => DONE);
    expect(() => under.start([job, job])).toThrow(/test.*implemented twice/);
  });

  test("the queue answers when it is asked whether it works", async () => {
    await under.queue.ping();
  });
});
