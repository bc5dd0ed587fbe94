import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ARRANGEMENTS, type Arranged } from "../support/arrangements.ts";
import { until } from "../support/until.ts";
import {
  cancel,
  collect,
  EVENTS,
  LOGS,
  script,
  settles,
  sha256,
  stateOf,
  submit,
  writes,
} from "../support/workloads.ts";

/** The same journeys, whichever way the platform is put together. */
describe.each(ARRANGEMENTS)("on $name", ({ missing, start }) => {
  let platform: Arranged;
  const reason = missing();
  beforeAll(async () => {
    if (!reason) platform = await start();
  }, 300_000);
  beforeEach(({ skip, onTestFailed }) => {
    if (reason) skip(reason);
    onTestFailed(() => console.error(platform?.lastOutput()));
  });
  afterAll(() => platform?.dispose(), 60_000);

  test("files go up, a workload runs on them, and what it leaves comes down", { timeout: 120_000 }, async () => {
    const client = platform.admin;
    const uploaded = await client.rest("uploadAsset", { query: { name: "lines.txt" }, body: "b\na\n" });
    const { asset_id, id = asset_id } = uploaded.body;
    const workload = script("sort $NODUS_INPUT_lines/*; mkdir -p outputs; echo sorted > outputs/x", {
      inputs: [{ name: "lines", assetId: id }],
    });
    const key = crypto.randomUUID();
    const workloadId = await submit(client, workload, key);
    expect(await submit(client, workload, key)).toBe(workloadId);
    expect(await settles(client, workloadId)).toMatchObject({ status: "completed", exitCode: 0 });
    expect((await client.rest("getWorkloadLogs", { path: { id: workloadId } })).body).toBe("a\nb\n");
    const { outputs } = (await client.rest("listWorkloadOutputs", { path: { id: workloadId } })).body;
    const ask = { path: { id: workloadId, name: outputs[0].name } };
    expect(sha256((await client.rest("downloadWorkloadOutput", ask)).bytes)).toBe(outputs[0].sha256);
  });

  test("a stream goes on at its cursor, and the work undisturbed, while processes are killed and come back", {
    timeout: 300_000,
  }, async () => {
    const client = platform.admin;
    const id = await submit(client, script(ticks(100_000)));
    const victims = [...platform.victims];
    let after = "";
    let text = "";
    let lost: Promise<void> | null = null;
    let wanted = "tick 5\n";
    for (let complete = false; !complete; ) {
      try {
        for await (const { workloadLogs } of client.overSocket(LOGS, { id, after })) {
          text += workloadLogs.text;
          after = workloadLogs.cursor;
          complete = workloadLogs.complete;
          if (lost || !text.includes(wanted)) continue;
          const victim = victims.shift();
          if (!victim) {
            wanted = "no more";
            await cancel(client, id);
            continue;
          }
          lost = platform.kill(victim).then(async () => {
            await platform.revive(victim);
            wanted = `tick ${text.split("\n").length + 5}\n`; // a while after it is back
            lost = null;
          });
        }
      } catch (error) {
        if (!lost && victims.length === platform.victims.length) throw error;
        await lost; // the stream broke off with a process that it came through
      }
    }
    expect(victims).toEqual([]);
    expect(text).toBe(ticked(text.split("\n").length - 1));
    const end = await settles(client, id, 60_000);
    expect(end).toMatchObject({ status: "cancelled" });
    expect(end.placements).toHaveLength(1);
    expect(end.placements[0]).toMatchObject({ generation: 1, logTailLost: false, logSha256: sha256(text) });
  });

  test("cancelled work ends at once, its stream with it", { timeout: 120_000 }, async () => {
    const client = platform.admin;
    const id = await submit(client, script("echo up; while :; do sleep 0.2; done"));
    await writes(client, id, "up");
    const stream = collect(client.overEvents(LOGS, { id }));
    await cancel(client, id);
    expect((await stream).at(-1)).toMatchObject({ workloadLogs: { complete: true } });
    expect(await settles(client, id)).toMatchObject({ status: "cancelled" });
    const events = await collect(client.overSocket(EVENTS, { id }));
    const seqs = events.flatMap(({ workloadEvents: { event } }) => (event ? [event.seq] : []));
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  });

  test("a restart in good order keeps history, and work runs through it", { timeout: 240_000 }, async () => {
    const client = platform.admin;
    const done = await submit(client, script("echo done"));
    const before = await settles(client, done);
    const running = await submit(client, script(ticks(50)));
    await writes(client, running, "tick 2\n");
    const codes = await platform.restart();
    expect(codes).toEqual(codes.map(() => 0));
    expect(await stateOf(client, done)).toEqual(before);
    expect(await settles(client, running, 60_000)).toMatchObject({ status: "completed", exitCode: 0 });
    expect((await client.rest("getWorkloadLogs", { path: { id: running } })).body).toBe(ticked(50));
  });

  test("when all is over, nothing is reserved or held, and the books balance", { timeout: 120_000 }, async () => {
    await until("nothing is reserved", async () => {
      const [capacity] = await platform.sql<{ slots: number }>(
        "select sum(slots_used)::int as slots from compute.capacity",
      );
      return capacity?.slots === 0;
    });
    const { account } = await platform.admin.query("{ account { activeRuns heldUsd trialBalanceUsd } }");
    expect(account).toEqual({ activeRuns: 0, heldUsd: 0, trialBalanceUsd: 0 });
    expect(await platform.sql("select id from compute.placement where state <> 'closed'")).toEqual([]);
  });
});

const ticks = (count: number) => `i=0; while [ $i -lt ${count} ]; do echo tick $i; i=$((i+1)); sleep 0.1; done`;
const ticked = (count: number) => Array.from({ length: count }, (_, i) => `tick ${i}\n`).join("");
