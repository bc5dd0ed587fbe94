import { expect, test } from "vitest";
import { COUNT, forEachQueueStore, NARROW } from "../../tests/support/queues.ts";
import { holdJob } from "../../tests/support/worker-process.ts";
import { DONE, implementJob } from "./implement-job.ts";

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const ascending = (a: number, b: number) => a - b;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A promise that the test settles. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), opened };
}

forEachQueueStore("ending workers of a queue", (under) => {
  test("closing waits for runs in progress and starts no more", async () => {
    const ran: number[] = [];
    const { open, opened } = gate();
    const job = implementJob(NARROW, async ({ n }) => {
      ran.push(n);
      await opened;
      return DONE;
    });
    await under.publish(3, NARROW);
    const workers = under.start([job]);
    await expect.poll(() => ran.length).toBe(1);
    const closed = workers.close();
    expect(workers.running).toBe(1);
    open();
    await closed;
    expect(workers.running).toBe(0);
    expect(ran).toHaveLength(1);
  });

  test("jobs that wait for a slot when the drain begins go back to the queue", async () => {
    const ran: string[] = [];
    const { open, opened } = gate();
    const slow = implementJob(NARROW, async ({ n }) => {
      ran.push(`narrow ${n}`);
      await opened;
      return DONE;
    });
    await under.publish(3, NARROW);
    const workers = under.start([slow, implementJob(COUNT, async () => DONE)]);
    await expect.poll(() => workers.running).toBe(3);
    const closed = workers.close();
    open();
    await closed;
    expect(ran).toHaveLength(1);
    const second = under.start([slow]);
    await expect.poll(() => ran.toSorted(), { timeout: 5_000 }).toEqual(["narrow 0", "narrow 1", "narrow 2"]);
    await second.close();
  });

  test("a run that outlasts the drain is told to stop, and another worker has its job at once", async () => {
    const signalled: string[] = [];
    const deaf = implementJob(COUNT, (_, { signal }) => {
      signal.addEventListener("abort", () => signalled.push(signal.reason.message));
      return new Promise<never>(() => {});
    });
    await under.publish(1);
    const first = under.start([deaf]);
    await expect.poll(() => first.running).toBe(1);
    await first.close(50);
    expect(signalled).toEqual(["the process is going down"]);
    const attempts: number[] = [];
    const job = implementJob(COUNT, async (_, { attempt }) => {
      attempts.push(attempt);
      return DONE;
    });
    const second = under.start([job]);
    await expect.poll(() => attempts, { timeout: 5_000 }).toEqual([1]);
    await second.close();
  });

  test("a worker process that is killed leaves its job to another", async () => {
    const killed = await holdJob({ ...under.stores, queue: COUNT.queue, lockMs: 600 });
    await under.publish(1);
    await killed.taken;
    killed.kill();
    let ran = 0;
    const job = implementJob(COUNT, async () => {
      ran++;
      return DONE;
    });
    const second = under.start([job], { lockMs: 600 });
    await expect.poll(() => ran, { timeout: 15_000 }).toBe(1);
    await second.close();
  });

  test("restarting the workers and the queue a hundred times loses and doubles nothing", async () => {
    const done: number[] = [];
    const job = implementJob(COUNT, async ({ n }) => {
      await pause(n % 3);
      done.push(n);
      return DONE;
    });
    for (let round = 0; round < 100; round++) {
      await under.publish(3, COUNT, round * 3);
      const workers = under.start([job]);
      await pause(round % 5);
      await workers.close();
      await under.reopen();
    }
    const workers = under.start([job]);
    await expect.poll(() => done.length, { timeout: 20_000 }).toBe(300);
    await workers.close();
    expect(done.sort(ascending)).toEqual(numbers(300));
  }, 120_000);
});
