import { expect, test } from "vitest";
import { sharedPlatform } from "../support/platform.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { processesWith } from "../support/process-table.ts";
import { until } from "../support/until.ts";
import { cancel, ends, reaches, script, settles, stateOf, submit, writes } from "../support/workloads.ts";

/** Funded for ten seconds at first, so that tests see the end of that. */
const platform = sharedPlatform({ NODUS_FIRST_WINDOW_SECONDS: "10" });

/** What the last event says over REST: the same truth on the other face. */
async function endOverRest(client: PlatformClient, id: string) {
  const { body } = await client.rest("listWorkloadEvents", { path: { id } });
  const ended = /^workload\.(completed|failed|cancelled)$/;
  const { event_type, payload } = body.events.find((event: { event_type: string }) => ended.test(event.event_type));
  const { reason, exit_code, signal } = payload;
  return { event_type, reason, exit_code, signal };
}

test.concurrent.each([
  ["ends with code 0", ["true"], { status: "completed", reason: null, exitCode: 0, signal: null }],
  ["ends with code 3", ["sh", "-c", "exit 3"], { status: "failed", reason: "exit_nonzero", exitCode: 3, signal: null }],
  [
    "is ended by a signal of its own",
    ["sh", "-c", "kill -SEGV $$"],
    { status: "failed", reason: "signalled", exitCode: 139, signal: "SIGSEGV" },
  ],
  [
    "kills itself as the system's memory killer would",
    ["sh", "-c", "kill -KILL $$"],
    { status: "failed", reason: "signalled", exitCode: 137, signal: "SIGKILL" },
  ],
  [
    "does not exist",
    ["there-is-no-such-program"],
    { status: "failed", reason: "start_failed", exitCode: null, signal: null },
  ],
  ["is not executable", ["/etc/passwd"], { status: "failed", reason: "start_failed", exitCode: null, signal: null }],
])("a command that %s is told so on both faces", { timeout: 30_000 }, async (_, command, truth) => {
  const client = platform().admin;
  const id = await submit(client, { source: { command } });
  const state = await ends(client, id);
  expect(state).toMatchObject(truth);
  expect(await endOverRest(client, id)).toEqual({
    event_type: `workload.${truth.status}`,
    reason: truth.reason,
    exit_code: truth.exitCode,
    signal: truth.signal,
  });
});

test.concurrent("a command that runs out of memory fails as that, with code 137, and its machine is let go", {
  timeout: 60_000,
}, async () => {
  const client = platform().admin;
  const id = await submit(client, { source: { command: ["tail", "/dev/zero"] } });
  const state = await settles(client, id, 50_000);
  expect(state).toMatchObject({ status: "failed", reason: "oom", exitCode: 137 });
  expect(state.placements).toHaveLength(1);
  expect(state.placements[0].oom).toBe(true);
});

test("work for a GPU that nobody has waits and says why, and is cancelled at once", { timeout: 30_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, script("echo never", { requirements: { gpu: "B200" } }));
  const state = await until("it says why it waits", async () => {
    const now = await stateOf(client, id);
    return now.waitingReason ? now : null;
  });
  expect(state.waitingReason).toBe("no_matching_offer");
  expect(state.waitingSince).not.toBeNull();
  await cancel(client, id);
  expect(await stateOf(client, id)).toMatchObject({ status: "cancelled", placements: [] });
  await settles(client, id);
  expect((await stateOf(client, id)).spendUsd).toBe(0);
});

test("cancelling a stubborn tree leaves none of its processes, and its neighbour lives on", {
  timeout: 60_000,
}, async () => {
  const client = platform().admin;
  const marks = { stubborn: `mark-${crypto.randomUUID()}`, neighbour: `mark-${crypto.randomUUID()}` };
  const stubborn = await submit(
    client,
    script(
      `export MARK=${marks.stubborn}; trap '' TERM INT HUP; (setsid sh -c 'trap "" TERM; while :; do sleep 0.3; done' &) &
       (sleep 1000 &); echo up; while :; do sleep 0.3; done`,
    ),
  );
  const neighbour = await submit(
    client,
    script(`export MARK=${marks.neighbour}; echo up; while [ ! -e state/stop ]; do sleep 0.2; done`),
  );
  await Promise.all([writes(client, stubborn, "up"), writes(client, neighbour, "up")]);
  expect(processesWith(marks.stubborn).length).toBeGreaterThan(2);
  const beside = processesWith(marks.neighbour).length;
  await cancel(client, stubborn);
  expect(await settles(client, stubborn)).toMatchObject({ status: "cancelled", reason: "cancelled" });
  expect(processesWith(marks.stubborn)).toEqual([]);
  expect(processesWith(marks.neighbour).length).toBeGreaterThanOrEqual(Math.min(beside, 1));
  expect(await stateOf(client, neighbour)).toMatchObject({ status: "running" });
  await cancel(client, neighbour);
  expect(await settles(client, neighbour)).toMatchObject({ status: "cancelled" });
  expect(processesWith(marks.neighbour)).toEqual([]);
});

test("a cancel in any state ends the work, gives everything back, and repeated changes nothing", {
  timeout: 90_000,
}, async () => {
  const client = platform().admin;
  const cancelledIn = new Set<string>();
  for (const delayMs of [0, 5, 20, 60, 150, 400]) {
    const id = await submit(client, script("sleep 30"));
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    cancelledIn.add((await stateOf(client, id)).status);
    await cancel(client, id);
    const state = await settles(client, id);
    expect(state).toMatchObject({ status: "cancelled", reason: "cancelled" });
    const { revision } = (await client.rest("getWorkload", { path: { id } })).body;
    const again = await client.rest("cancelWorkload", { path: { id } });
    expect(again.status).toBe(202);
    expect((await client.rest("getWorkload", { path: { id } })).body.revision).toBe(revision);
  }
  expect(cancelledIn.size).toBeGreaterThan(1);
  await nothingIsReserved();
});

test.concurrent("a deadline ends the command with its whole tree and says so", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const mark = `mark-${crypto.randomUUID()}`;
  const completeBy = new Date(Date.now() + 4_000).toISOString();
  const id = await submit(
    client,
    script(`export MARK=${mark}; (setsid sleep 1000 &); sleep 1000`, { outcome: { completeBy } }),
  );
  await reaches(client, id, ["running"]);
  const state = await settles(client, id);
  expect(state).toMatchObject({ status: "failed", reason: "deadline_exceeded" });
  expect(state.placements[0].killedBy).toBe("deadline");
  expect(processesWith(mark)).toEqual([]);
});

test.concurrent("a deadline also ends work that waits for capacity", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const completeBy = new Date(Date.now() + 1_500).toISOString();
  const id = await submit(client, script("true", { requirements: { gpu: "B200" }, outcome: { completeBy } }));
  expect(await settles(client, id)).toMatchObject({ status: "failed", reason: "deadline_exceeded", exitCode: null });
});

test.concurrent("work stops when its own limit is used up, and costs no more than that", {
  timeout: 60_000,
}, async () => {
  const client = platform().admin;
  const maxCostUsd = 0.00032;
  const id = await submit(client, script("echo begun; sleep 1000", { outcome: { maxCostUsd } }));
  const state = await settles(client, id, 50_000);
  expect(state).toMatchObject({ status: "failed", reason: "budget_exhausted" });
  expect(state.placements[0].killedBy).toBe("funding");
  expect(state.spendUsd).toBeGreaterThan(0);
  expect(state.spendUsd).toBeLessThanOrEqual(maxCostUsd);
});

test.concurrent("work that outlasts the time it was first paid for goes on while there is credit", {
  timeout: 60_000,
}, async () => {
  const client = platform().admin;
  const id = await submit(client, script("sleep 11; echo still here"));
  const state = await settles(client, id, 50_000);
  expect(state).toMatchObject({ status: "completed", exitCode: 0 });
  expect(state.placements[0].ranMs).toBeGreaterThan(10_000);
});

test("when all is over, nothing is reserved or held, and the books balance", async () => {
  const client = platform().admin;
  await nothingIsReserved();
  const { account } = await client.query("{ account { trialBalanceUsd heldUsd activeRuns } }");
  expect(account).toEqual({ trialBalanceUsd: 0, heldUsd: 0, activeRuns: 0 });
});

async function nothingIsReserved(): Promise<void> {
  const used = await platform().sql(
    "select cpu_millis_used::int as cpu, memory_mb_used::int as memory, slots_used::int as slots from compute.capacity",
  );
  expect(used).toEqual(used.map(() => ({ cpu: 0, memory: 0, slots: 0 })));
}
