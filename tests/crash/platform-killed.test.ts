import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { sharedPlatform } from "../support/platform.ts";
import { processesWith } from "../support/process-table.ts";
import { seeded } from "../support/seeded.ts";
import { until } from "../support/until.ts";
import { cancel, ends, LOGS, script, settles, sha256, submit, writes } from "../support/workloads.ts";

/** `kill -9` of the platform's process, or of its database, while the host agent and its guests live. */
const platform = sharedPlatform();

const ticks = (count: number) => `i=0; while [ $i -lt ${count} ]; do echo tick $i; i=$((i+1)); sleep 0.1; done`;
const ticked = (count: number) => Array.from({ length: count }, (_, i) => `tick ${i}\n`).join("");

async function expectUntouched(id: string, log: string): Promise<void> {
  const client = platform().admin;
  const end = await settles(client, id, 60_000);
  expect(end).toMatchObject({ status: "completed", exitCode: 0 });
  expect(end.placements).toHaveLength(1);
  expect(end.placements[0]).toMatchObject({ generation: 1, logTailLost: false, logSha256: sha256(log) });
  expect((await client.rest("getWorkloadLogs", { path: { id } })).body).toBe(log);
}

async function expectNothingLeft(): Promise<void> {
  const [capacity] = await platform().sql("select sum(slots_used)::int as slots from compute.capacity");
  expect(capacity).toEqual({ slots: 0 });
  const { account } = await platform().admin.query("{ account { activeRuns heldUsd trialBalanceUsd } }");
  expect(account).toEqual({ activeRuns: 0, heldUsd: 0, trialBalanceUsd: 0 });
}

test("work goes on in the same generation when the platform is killed in mid-run, and its log is exact to the byte", {
  timeout: 120_000,
}, async () => {
  const client = platform().admin;
  const id = await submit(client, script(`${ticks(80)}; mkdir -p outputs; echo result > outputs/x`));
  const mark = `mark-${crypto.randomUUID()}`;
  const stubborn = await submit(
    client,
    script(`export MARK=${mark}; trap '' TERM; echo up; while :; do sleep 0.3; done`),
  );
  await Promise.all([writes(client, id, "tick 5\n"), writes(client, stubborn, "up")]);
  await platform().kill();
  await sleep(700);
  await platform().start();
  await writes(client, id, "tick 30\n");
  await cancel(client, stubborn);
  await expectUntouched(id, ticked(80));
  const { body } = await client.rest("listWorkloadOutputs", { path: { id } });
  expect(body.outputs).toHaveLength(1);
  expect(await settles(client, stubborn)).toMatchObject({ status: "cancelled" });
  expect(processesWith(mark)).toEqual([]);
});

test("work that ends while the platform is dead has ended right when it is back", { timeout: 120_000 }, async () => {
  const client = platform().admin;
  const good = await submit(client, script("echo up; sleep 1; echo end"));
  const bad = await submit(client, script("echo up; sleep 1; exit 9"));
  await Promise.all([writes(client, good, "up"), writes(client, bad, "up")]);
  await platform().kill();
  await sleep(2_000);
  await platform().start();
  await expectUntouched(good, "up\nend\n");
  expect(await settles(client, bad)).toMatchObject({ status: "failed", reason: "exit_nonzero", exitCode: 9 });
});

test("a reader takes a stream up again across the death of the platform without gap or repeat", {
  timeout: 120_000,
}, async () => {
  const client = platform().admin;
  const id = await submit(client, script(ticks(60)));
  let after = "";
  let text = "";
  let killed = false;
  for (let complete = false; !complete; ) {
    try {
      for await (const { workloadLogs } of client.overSocket(LOGS, { id, after })) {
        text += workloadLogs.text;
        after = workloadLogs.cursor;
        complete = workloadLogs.complete;
        if (killed || !text.includes("tick 8\n")) continue;
        killed = true;
        void platform().kill();
      }
    } catch {
      await platform().start(); // the stream broke off with the platform
    }
  }
  expect(killed).toBe(true);
  expect(text).toBe(ticked(60));
});

test("the command line follows a log across the death of the platform, byte for byte", {
  timeout: 120_000,
}, async () => {
  const client = platform().admin;
  const id = await submit(client, script(ticks(80)));
  const following = await platform().begin(["logs", "--follow", id]);
  await until("it shows what is written", () => following.stdout().includes("tick 3\n"));
  await platform().kill();
  await platform().start();
  expect(await following.ended).toMatchObject({ code: 0, stdout: ticked(80) });
});

test("the database is started again when it is killed, and work that runs meanwhile ends right", {
  timeout: 120_000,
}, async () => {
  const client = platform().admin;
  const id = await submit(client, script(ticks(60)));
  await writes(client, id, "tick 5\n");
  await platform().killPostgres();
  await expect
    .poll(async () => (await client.send("GET", "/readyz")).status, { timeout: 60_000, interval: 200 })
    .toBe(200);
  await expectUntouched(id, ticked(60));
  await expectNothingLeft();
});

test("killed at random moments of the lives of many workloads, the platform loses and doubles none", {
  timeout: 240_000,
}, async () => {
  const client = platform().admin;
  const random = seeded(20_26);
  const logs = new Map<string, string>();
  for (let round = 0; round < 3; round++) {
    const work = Array.from({ length: 6 }, (_, i) => ({
      key: crypto.randomUUID(),
      log: `round ${round} run ${i}\n`,
      command: script(`echo round ${round} run ${i}; sleep 0.${random(9)}`),
    }));
    const answers = Promise.allSettled(work.map(({ key, command }) => submit(client, command, key)));
    const waiting = Promise.allSettled([submit(client, script("true", { requirements: { gpu: "B200" } }))]);
    await sleep(random(900));
    await platform().kill();
    const [first, [waits]] = await Promise.all([answers, waiting]);
    await platform().start();
    for (const [i, { key, command, log }] of work.entries()) {
      // Whether a submit without an answer counted is not known: the same key finds it, or makes it now.
      const id = await submit(client, command, key);
      const answer = first[i]!;
      if (answer.status === "fulfilled") expect(id).toBe(answer.value);
      logs.set(id, log);
    }
    if (waits?.status === "fulfilled") {
      await cancel(client, waits.value);
      expect(await ends(client, waits.value)).toMatchObject({ status: "cancelled" });
    }
  }
  expect(logs.size).toBe(18);
  for (const [id, log] of logs) {
    const end = await settles(client, id, 120_000);
    expect(end).toMatchObject({ status: "completed", exitCode: 0 });
    expect((await client.rest("getWorkloadLogs", { path: { id } })).body).toBe(log);
    expect(end.placements.filter((p: { outcome: string }) => p.outcome === "completed")).toHaveLength(1);
  }
  const gpu = await platform().sql<{ id: string }>("select id from compute.workload where settled_at is null");
  for (const { id } of gpu) await cancel(client, id);
  await expect.poll(unfinished, { timeout: 60_000, interval: 200 }).toEqual([]);
  await expectNothingLeft();
});

/** Work that waits for a GPU and whose submit was never answered is among it until it is cancelled. */
function unfinished() {
  return platform().sql("select id, status from compute.workload where settled_at is null");
}
