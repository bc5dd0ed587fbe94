import { expect, test } from "vitest";
import { sharedPlatform } from "../support/platform.ts";
import { processesWith } from "../support/process-table.ts";
import { until } from "../support/until.ts";
import { collect, LOGS, type LogItem, script, settles, submit, writes } from "../support/workloads.ts";
import { expectSavedLog } from "./saved-log.ts";

/** `kill -9` of the host agent, or of everything at once, as when a machine loses power. */
const platform = sharedPlatform();

const mark = `mark-${crypto.randomUUID()}`;
/** The first life never ends by itself; the checkpoint folder is empty again in the second. */
const again = (marker: string) => `export MARK=${mark}; echo begun ${marker}; sleep 5; echo ended ${marker}`;

test("after everything was killed, work goes on in one new generation or fails as its policy says", {
  timeout: 180_000,
}, async () => {
  const client = platform().admin;
  const resumes = await submit(client, script(again("a")));
  const doesNot = await submit(client, script(again("b"), { continuity: { resumeOnInterruption: false } }));
  await Promise.all([writes(client, resumes, "begun a"), writes(client, doesNot, "begun b")]);
  await platform().killEverything();
  expect(processesWith(mark)).toEqual([]);
  await platform().start();

  const failed = await settles(client, doesNot, 90_000);
  expect(failed).toMatchObject({ status: "failed", reason: "recovery_disabled", exitCode: null });
  expect(failed.placements).toHaveLength(1);
  expect(failed.placements[0]).toMatchObject({ outcome: "lost", exitCode: null, logTailLost: true });

  const end = await settles(client, resumes, 120_000);
  expect(end).toMatchObject({ status: "completed", exitCode: 0 });
  expect(end.placements).toMatchObject([
    { generation: 1, outcome: "lost", logTailLost: true },
    { generation: 2, outcome: "completed", logTailLost: false },
  ]);
  expect(processesWith(mark)).toEqual([]);

  const first = await client.rest("getWorkloadLogs", { path: { id: resumes }, query: { generation: 1 } });
  expect(first.body).toBe("begun a\n");
  await expectSavedLog(client, resumes, "begun a\nended a\n");
  const items: LogItem[] = (await collect(client.overSocket(LOGS, { id: resumes }))).map((item) => item.workloadLogs);
  expect(items.flatMap(({ end: log, generation }) => (log ? [{ generation, tailLost: log.tailLost }] : []))).toEqual([
    { generation: 1, tailLost: true },
    { generation: 2, tailLost: false },
  ]);
  const events = (await client.rest("listWorkloadEvents", { path: { id: resumes } })).body.events;
  expect(events.map((event: { event_type: string }) => event.event_type)).toEqual(
    expect.arrayContaining(["workload.recovering", "workload.completed", "workload.settled"]),
  );
  const routing = (await client.rest("getWorkloadRouting", { path: { id: resumes } })).body.placements;
  expect(routing.map((row: { superseded_by: number | null }) => row.superseded_by)).toEqual([2, null]);
});

test("work whose host agent was killed goes on in a new generation", { timeout: 180_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, script(again("c")));
  await writes(client, id, "begun c");
  await platform().killHostAgent();
  await until("its guests are dead", () => processesWith(mark).length === 0);
  const end = await settles(client, id, 150_000);
  expect(end).toMatchObject({ status: "completed", exitCode: 0 });
  expect(end.placements.map((p: { generation: number }) => p.generation)).toEqual([1, 2]);
  await expectSavedLog(client, id, "begun c\nended c\n");
});

test("when all is over, nothing is reserved or held, and every generation is in the books", async () => {
  const [capacity] = await platform().sql("select sum(slots_used)::int as slots from compute.capacity");
  expect(capacity).toEqual({ slots: 0 });
  const { account } = await platform().admin.query("{ account { activeRuns heldUsd trialBalanceUsd } }");
  expect(account).toEqual({ activeRuns: 0, heldUsd: 0, trialBalanceUsd: 0 });
  const open = await platform().sql("select id from compute.placement where state <> 'closed'");
  expect(open).toEqual([]);
});
