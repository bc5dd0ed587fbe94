import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { DONE, implementJob } from "../../infra/queue/implement-job.ts";
import { COUNT, forEachQueueStore } from "../support/queues.ts";
import { seeded } from "../support/seeded.ts";

/** A hundred: `NODUS_TEST_RESTARTS=100 vitest run tests/crash/restarts.test.ts`. */
const RESTARTS = Number(process.env.NODUS_TEST_RESTARTS ?? 12);
const JOBS_PER_LIFE = 10;
/** Every so many restarts the queue's own connection goes too. */
const REOPEN_EVERY = 4;

forEachQueueStore(`${RESTARTS} restarts of workers and queue`, (under) => {
  test("lose no job, and run none in two places at once", { timeout: 60_000 + RESTARTS * 3_000 }, async () => {
    const random = seeded(27);
    const done = new Map<number, number>();
    const running = new Set<number>();
    const doubled: number[] = [];
    const job = implementJob(COUNT, async ({ n }, { signal }) => {
      if (running.has(n)) doubled.push(n);
      running.add(n);
      signal.addEventListener("abort", () => running.delete(n));
      await sleep(1 + (n % 20), undefined, { signal }).finally(() => running.delete(n));
      done.set(n, (done.get(n) ?? 0) + 1);
      return DONE;
    });
    for (let life = 0; life < RESTARTS; life++) {
      await under.publish(JOBS_PER_LIFE, COUNT, life * JOBS_PER_LIFE);
      const workers = under.start([job]);
      await sleep(random(60));
      await workers.close(random(2) === 0 ? 0 : 1_000); // in the middle of runs, or after them
      if (life % REOPEN_EVERY === REOPEN_EVERY - 1) await under.reopen();
    }
    const last = under.start([job]);
    await expect.poll(() => done.size, { timeout: 50_000 }).toBe(RESTARTS * JOBS_PER_LIFE);
    await last.close();
    expect(doubled).toEqual([]);
    expect([...done].filter(([, times]) => times !== 1)).toEqual([]);
  });
});
