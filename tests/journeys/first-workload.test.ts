import { beforeAll, describe, expect, test } from "vitest";
import { sharedPlatform } from "../support/platform.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { collect, EVENTS, ends, LOGS, type LogItem, script, settles, sha256, submit } from "../support/workloads.ts";

const platform = sharedPlatform();

const SCRIPT = "echo started; sleep 1; echo done; mkdir -p outputs; printf 'a result\\n' > outputs/x";
const LOG = "started\ndone\n";
const RESULT = "a result\n";

/** The two ways in; everything after that must be the same. */
const SUBMISSIONS: [string, (client: PlatformClient) => Promise<string>][] = [
  ["GraphQL", (client) => submit(client, script(SCRIPT, { name: "first" }))],
  [
    "REST",
    async (client) => {
      const headers = { "idempotency-key": crypto.randomUUID() };
      const { status, body } = await client.rest("createWorkload", {
        body: script(SCRIPT, { name: "first" }),
        headers,
      });
      expect({ status, state: body.status, revision: body.revision }).toEqual({
        status: 202,
        state: "accepted",
        revision: 1,
      });
      return body.workload_id;
    },
  ],
];

describe.each(SUBMISSIONS)("a workload that prints, sleeps and writes a file, submitted over %s", (_, begin) => {
  let id = "";
  let live: { socket: LogItem[]; events: LogItem[]; history: { seq: number; type: string }[] };

  beforeAll(async () => {
    const client = platform().admin;
    id = await begin(client);
    const [socket, events, history] = await Promise.all([
      collect(client.overSocket(LOGS, { id })),
      collect(client.overEvents(LOGS, { id })),
      collect(client.overSocket(EVENTS, { id })),
    ]);
    await settles(client, id);
    live = {
      socket: socket.map((item) => item.workloadLogs),
      events: events.map((item) => item.workloadLogs),
      history: history.map((item) => item.workloadEvents.event).filter((event) => event !== null),
    };
  }, 60_000);

  test("is seen live over a WebSocket and over server-sent events, whole and with its hash", () => {
    for (const items of [live.socket, live.events]) {
      expect(Buffer.concat(items.map((item) => Buffer.from(item.data, "base64"))).toString()).toBe(LOG);
      expect(items.map((item) => item.text).join("")).toBe(LOG);
      expect(items.at(-1)).toMatchObject({
        complete: true,
        end: { totalBytes: LOG.length, truncated: false, tailLost: false },
      });
      const hash = items.at(-1)!.end!.sha256;
      expect(hash).toBe(sha256(LOG));
      expect(items.filter((item) => item.complete)).toHaveLength(1);
    }
  });

  test("tells its events in order and without a gap, live and afterwards", async () => {
    const client = platform().admin;
    const seqs = live.history.map((event) => event.seq);
    expect(seqs).toEqual(seqs.map((_, i) => i + 1));
    const types = live.history.map((event) => event.type);
    expect(types[0]).toBe("workload.accepted");
    expect(types.filter((type) => type !== "workload.waiting")).toEqual([
      "workload.accepted",
      "workload.planning",
      "workload.reserving",
      "workload.provisioning",
      "workload.running",
      "workload.stage_started",
      "workload.stage_completed",
      "workload.completed",
      "workload.resources_released",
      "workload.settled",
    ]);
    const { body } = await client.rest("listWorkloadEvents", { path: { id } });
    const ids = body.events.map((event: { id: number }) => event.id);
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    expect(new Set(ids).size).toBe(ids.length);
    expect(body.events.map((event: { event_type: string }) => event.event_type)).toEqual(types);
    const later = await client.rest("listWorkloadEvents", { path: { id }, query: { after: ids[4] } });
    expect(later.body.events.map((event: { id: number }) => event.id)).toEqual(ids.slice(5));
  });

  test("leaves a log that can be read in pages and whole", async () => {
    const client = platform().admin;
    const saved = await client.rest("getWorkloadLogs", { path: { id } });
    expect(saved.bytes.toString()).toBe(LOG);
    expect(saved.headers.get("x-nodus-stage-id")).toBe("main");
    expect(saved.headers.get("x-nodus-generation")).toBe("1");
    expect(saved.headers.get("x-nodus-sha256")).toBe(sha256(LOG));
    expect(saved.headers.get("x-nodus-log-source")).toBeNull();
    const page = await client.rest("liveLogs", { path: { id } });
    expect(page.body.chunks.map((chunk: { text: string }) => chunk.text).join("")).toBe(LOG);
    const rest = await client.rest("liveLogs", { path: { id }, query: { after: page.body.next_cursor } });
    expect(rest.body.chunks).toEqual([]);
  });

  test("leaves an output whose download has the listed size and hash", async () => {
    const client = platform().admin;
    const { body } = await client.rest("listWorkloadOutputs", { path: { id } });
    expect(body.outputs).toHaveLength(1);
    const [output] = body.outputs;
    const download = await client.rest("downloadWorkloadOutput", { path: { id, name: output.name } });
    expect(download.headers.get("content-length")).toBe(String(output.bytes));
    expect(download.bytes.length).toBe(output.bytes);
    expect(sha256(download.bytes)).toBe(output.sha256);
    expect(download.bytes.includes(Buffer.from(RESULT))).toBe(true);
  });

  test("is charged what its time costs, and the books balance", async () => {
    const client = platform().admin;
    const { workload } = await client.query(
      "query price($id: ID!) { workload(id: $id) { spendUsd placements { ranMs rateUsdPerHour chargedUsd } } }",
      { id },
    );
    const [{ ranMs, rateUsdPerHour, chargedUsd }] = workload.placements;
    const rateMicros = Math.round(rateUsdPerHour * 1e6);
    const compute = Math.floor((rateMicros * ranMs) / 3_600_000);
    const { body } = await client.rest("getWorkloadLedger", { path: { id } });
    const charges = body.entries.filter((entry: { entry_type: string }) => entry.entry_type === "customer_charge");
    const micros = (usd: number | null) => Math.round((usd ?? 0) * 1e6);
    const charged = charges.reduce((sum: number, e: { credit_usd: number }) => sum + micros(e.credit_usd), 0);
    expect(micros(charges[0].credit_usd)).toBe(compute);
    expect(charged).toBe(compute + Math.floor(compute / 10));
    expect(micros(workload.spendUsd)).toBe(charged);
    expect(micros(chargedUsd)).toBe(charged);
    expect(body.settlement).toMatchObject({ status: "settled", balance_usd: 0, closed_at: expect.any(String) });
    const { account } = await client.query("{ account { trialBalanceUsd heldUsd activeRuns } }");
    expect(account).toMatchObject({ trialBalanceUsd: 0 });
    const meter = (await client.rest("getWorkload", { path: { id } })).body.meter;
    expect(micros(meter.settled_usd)).toBe(charged);
    expect(micros(meter.total_now_usd)).toBe(charged);
    expect(meter.accruing_usd).toBe(0);
  });

  test("tells where it ran", async () => {
    const client = platform().admin;
    const { body } = await client.rest("getWorkloadRouting", { path: { id } });
    expect(body.placements).toHaveLength(1);
    expect(body.placements[0]).toMatchObject({
      workload_id: id,
      stage_id: "main",
      generation: 1,
      region: "local",
      outcome: "completed",
    });
    const running = live.history.find((event) => event.type === "workload.running") as unknown as {
      payload: Record<string, unknown>;
    };
    expect(running.payload).toMatchObject({ note: "image not pulled: host userland", simulated: false });
    expect((await client.rest("listWorkloadArtifacts", { path: { id } })).body.artifacts).toHaveLength(1);
    expect((await client.rest("listWorkloadRLEvents", { path: { id } })).body.events).toEqual([]);
  });

  test("is found by its id and in the list, and belongs to whoever submitted it", async () => {
    const client = platform().admin;
    const { me, node } = await client.query(
      "query who($id: ID!) { me { email tenantId memberId } node(id: $id) { __typename ... on Workload { id status ownerUserId owner { email } } } }",
      { id },
    );
    expect(node).toEqual({
      __typename: "Workload",
      id,
      status: "completed",
      ownerUserId: me.memberId,
      owner: { email: me.email },
    });
    expect((await client.rest("identity")).body).toMatchObject({ email: me.email, tenant: me.tenantId });
    const { body } = await client.rest("listWorkloads", { query: { status: "terminal", scope: "mine" } });
    const listed = body.workloads.find((row: { id: string }) => row.id === id);
    expect(listed).toMatchObject({ status: "completed", name: "first", owner_user_id: me.memberId });
  });
});

test("one query tells the whole story of a workload", { timeout: 30_000 }, async () => {
  const client = platform().admin;
  const id = await submit(client, script("echo one; mkdir outputs; echo 1 > outputs/one.txt"));
  await ends(client, id);
  const { workload } = await client.query(
    `query story($id: ID!) { workload(id: $id) {
      status reason exitCode payload route
      stages { stageId status exitCode }
      placements { generation sku simulated rejected candidates note isolation outcome }
      meter { totalNowUsd } ledger { settlement { status } }
      events { seq type } outputs { name sha256 bytes } artifacts { id } log { bytes sha256 source }
      rlEvents(first: 10) { events { id } }
    } }`,
    { id },
  );
  expect(workload).toMatchObject({ status: "completed", reason: null, exitCode: 0 });
  expect(workload.stages).toEqual([{ stageId: "main", status: "completed", exitCode: 0 }]);
  expect(workload.outputs).toHaveLength(1);
  expect(workload.log.bytes).toBe(4);
});
