import { beforeEach, expect, test } from "vitest";
import { defineJob } from "../../infra/queue/define-job.ts";
import { Chance } from "./chance.ts";
import { MemoryQueue, type QueuedJob, type RunEnd } from "./memory-queue.ts";
import { SimClock } from "./sim-clock.ts";

const definition = defineJob<unknown>({ name: "a.job", queue: "q", concurrency: 1, timeoutMs: 1_000, attempts: 3 });
const job = (id: string) => ({ id, definition, payload: { id } });

let clock: SimClock;
let queue: MemoryQueue;
let runs: { id: string; attempt: number; atMs: number }[];
let ends: (RunEnd | null)[];
let happened: string[];

beforeEach(() => {
  clock = new SimClock(new Date(0));
  runs = [];
  ends = [];
  happened = [];
  queue = new MemoryQueue({
    clock: clock.view({ owner: {}, stepped: false }),
    chance: new Chance(1),
    count: (_, what) => void happened.push(what),
    run: ({ id, attempt }: QueuedJob) => {
      const end = ends.length > 0 ? ends.shift()! : "over";
      if (end === null) return null;
      runs.push({ id, attempt, atMs: clock.nowMs });
      return Promise.resolve(end);
    },
  });
});

/** Until nobody sleeps. */
async function pass(): Promise<void> {
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve));
    if (clock.nextDueMs() === Number.POSITIVE_INFINITY) return;
    clock.wakeNext();
  }
}

test("a flood delivers what was put in last again, done or not, and is counted as what is lost is", async () => {
  await queue.publish([job("a"), job("b")]);
  await pass();
  queue.flood(2);
  await pass();
  expect(runs.map(({ id }) => id).toSorted()).toEqual(["a", "a", "a", "b", "b", "b"]);
  queue.faults.loss = 1;
  await queue.publish([job("c")]);
  expect(happened).toEqual(["flooded", "lost a.job"]);
});

test("an emptied queue counts when there was something in it", async () => {
  queue.flush();
  await queue.publish([job("a")]);
  queue.flush();
  await pass();
  expect([runs, happened]).toEqual([[], ["emptied"]]);
});

test("a job is run once, however often its id is published while it is there", async () => {
  await queue.publish([job("1"), job("1")]);
  await queue.publish([job("1")]);
  expect(queue.size).toBe(1);
  await pass();
  expect(runs.map(({ id }) => id)).toEqual(["1"]);
  expect(queue.size).toBe(0);
});

test("a run that asks for another gets it as often as the definition says, each in its own attempt", async () => {
  ends = ["again", "again", "again", "again"];
  await queue.publish([job("1")]);
  await pass();
  expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
  expect(queue.size).toBe(0);
});

test("a run that died with its process, or found none, is given to another and costs no attempt", async () => {
  ends = [null, "lost", "elsewhere", "over"];
  await queue.publish([job("1")]);
  await pass();
  expect(runs.map(({ attempt }) => attempt)).toEqual([1, 1, 1]);
  expect(runs[1]!.atMs - runs[0]!.atMs).toBeGreaterThanOrEqual(15_000);
});

test("what lies in it is gone when it is emptied, and may be published again", async () => {
  await queue.publish([job("1"), job("2")]);
  queue.flush();
  await queue.publish([job("2")]);
  await pass();
  expect(runs.map(({ id }) => id)).toEqual(["2"]);
});

test("a queue that behaves badly loses some jobs and delivers others twice", async () => {
  Object.assign(queue.faults, { loss: 0.3, duplicate: 0.3 });
  await queue.publish(Array.from({ length: 200 }, (_, n) => job(String(n))));
  await pass();
  const times = Map.groupBy(runs, ({ id }) => id);
  expect(times.size).toBeLessThan(180);
  expect([...times.values()].filter((ran) => ran.length === 2).length).toBeGreaterThan(20);
  expect(queue.size).toBe(0);
});
