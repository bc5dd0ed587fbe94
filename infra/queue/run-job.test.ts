import { afterEach, beforeEach, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { OutboxRow } from "../db/outbox.ts";
import { FakeClock } from "../kernel/clock.ts";
import { createLogger } from "../telemetry/logger.ts";
import { defineJob } from "./define-job.ts";
import { DONE, implementJob, type JobContext, type JobImplementation } from "./implement-job.ts";
import { RunAgain, RunElsewhere, type RunReport, runJob } from "./run-job.ts";

const JOB = defineJob<{ id: string }>({
  name: "test.run",
  queue: "test",
  concurrency: 1,
  timeoutMs: 30_000,
  attempts: 3,
});
const RUN = { id: "run-1", payload: { id: "wl_1" }, attempt: 1, attempts: 3 };

let database: TestDatabase;
let clock: FakeClock;
let lines: Record<string, unknown>[];
let reports: RunReport[];
let stopping: AbortController;

beforeEach(async () => {
  database = await testDatabase([OutboxRow]);
  clock = new FakeClock("2026-03-01T00:00:00Z");
  lines = [];
  reports = [];
  stopping = new AbortController();
});

afterEach(() => database.close());

function run(body: JobImplementation<{ id: string }>["body"], changes: Partial<typeof RUN> = {}): Promise<void> {
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const logger = createLogger({ level: "debug", role: "test", destination });
  const onRun = (report: RunReport) => reports.push(report);
  const job = implementJob(JOB, body);
  return runJob(job, { ...RUN, ...changes }, { db: database.db, clock, logger, stopping: stopping.signal, onRun });
}

/** A body that goes on until it is told to stop. */
function untilAborted({ signal }: JobContext): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

test("a body gets its payload, its run's id and the number of its attempt", async () => {
  let seen: unknown;
  await run(
    async (payload, { runId, attempt }) => {
      seen = { payload, runId, attempt };
      return DONE;
    },
    { attempt: 2 },
  );
  expect(seen).toEqual({ payload: { id: "wl_1" }, runId: "run-1", attempt: 2 });
  expect(reports).toEqual([{ job: "test.run", queue: "test", outcome: "done", durationMs: 0, attempt: 2 }]);
});

test("a job that goes on later is written to the outbox with that time, and this run is finished with", async () => {
  const at = new Date("2026-03-01T06:00:00Z");
  await run(async () => ({ outcome: "later", at, reason: "the shop is closed" }));
  const rows = await database.db.sql("select job, payload, due_at, created_at from infra.outbox");
  expect(rows).toEqual([{ job: "test.run", payload: { id: "wl_1" }, due_at: at, created_at: clock.now() }]);
  expect(lines).toContainEqual(expect.objectContaining({ job: "test.run", reason: "the shop is closed" }));
});

test("a body that throws is logged with its job and payload, and run again", async () => {
  const failing = run(async () => {
    throw new Error("no such bucket: s3cr3t-name");
  });
  await expect(failing).rejects.toThrow(RunAgain);
  await expect(failing).rejects.not.toThrow(/s3cr3t/); // the queue stores the text
  expect(lines).toEqual([
    expect.objectContaining({
      level: "error",
      job: "test.run",
      runId: "run-1",
      payload: { id: "wl_1" },
      err: expect.objectContaining({ message: "no such bucket: s3cr3t-name" }),
    }),
  ]);
  expect(reports[0]?.outcome).toBe("failed");
});

test("a job that asks for another run gets it, until its attempts are used up", async () => {
  const body = async () => ({ outcome: "retry", reason: "busy" }) as const;
  await expect(run(body)).rejects.toThrow(RunAgain);
  await expect(run(body, { attempt: 3 })).rejects.toThrow(RunAgain);
  expect(reports.map((report) => report.outcome)).toEqual(["retry", "gave_up"]);
  expect(lines.at(-1)).toMatchObject({ level: "error", msg: expect.stringContaining("used up its attempts") });
});

test("a run that uses up its time is told to stop and counts as lost", async () => {
  const ended = run((_, context) => untilAborted(context));
  const failed = expect(ended).rejects.toThrow(RunAgain);
  await clock.advance(29_999);
  expect(reports).toEqual([]);
  await clock.advance(1);
  await failed;
  expect(reports).toEqual([{ job: "test.run", queue: "test", outcome: "timed_out", durationMs: 30_000, attempt: 1 }]);
});

test("a run that does not listen is given up a little later, and its end is still logged", async () => {
  let fail = (_: Error) => {};
  const deaf = () =>
    new Promise<never>((_, reject) => {
      fail = reject;
    });
  const failed = expect(run(deaf)).rejects.toThrow(RunAgain);
  await clock.advance(30_000);
  await clock.advance(2_000);
  await failed;
  expect(reports[0]?.outcome).toBe("timed_out");
  fail(new Error("late"));
  await expect.poll(() => lines.at(-1)).toMatchObject({ err: { message: "late" } });
});

test("a body that finishes within its grace counts as done", async () => {
  const body = (_: unknown, { signal }: JobContext) =>
    new Promise<typeof DONE>((resolve) => signal.addEventListener("abort", () => resolve(DONE)));
  const ended = run(body);
  await clock.advance(30_000);
  await ended;
  expect(reports[0]?.outcome).toBe("done");
});

test("a process that goes down aborts its runs, which are run elsewhere at no cost", async () => {
  const stopped = expect(run((_, context) => untilAborted(context), { attempt: 3 })).rejects.toThrow(RunElsewhere);
  stopping.abort(new Error("going down"));
  await stopped;
  expect(reports[0]?.outcome).toBe("stopped");
});

test("a run that does not listen does not hold up the process's end for long", async () => {
  const stopped = expect(run(() => new Promise<never>(() => {}))).rejects.toThrow(RunElsewhere);
  stopping.abort(new Error("going down"));
  await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(2_000);
  await stopped;
});
