import http from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Crowd, type Leaving, openStreams } from "../support/crowd.ts";
import { type Held, INSPECTABLE, Inspected } from "../support/inspected.ts";
import { sharedPlatform } from "../support/platform.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { until } from "../support/until.ts";
import { cancel, collect, EVENTS, ends, LOGS, script, submit } from "../support/workloads.ts";

const READERS = { sockets: 5, perSocket: 100, events: 500 };
/** What a stream that was opened and closed may leave behind, on average: noise of the process is more than nothing. */
const LEFT_BYTES_PER_STREAM = 400;

const platform = sharedPlatform(INSPECTABLE);
let silent: string[] = [];
let inspected: Inspected;

beforeAll(async () => {
  const waits = script("true", { requirements: { gpu: "B200" } });
  silent = await Promise.all(Array.from({ length: 10 }, () => submit(platform().admin, waits)));
  inspected = await Inspected.open(platform());
}, 60_000);
afterAll(() => inspected?.close());

async function gather(client: PlatformClient): Promise<Crowd> {
  const crowd = new Crowd(client, { document: LOGS, ids: silent, ...READERS });
  await until("everybody is served", async () => (await openStreams(platform().admin)) >= crowd.size);
  expect(crowd.ended).toBe(0);
  return crowd;
}

/** A thousand streams, opened and ended in that way; nothing is held for them five seconds later. */
async function comeAndGo(how: Leaving): Promise<Held> {
  const crowd = await gather(platform().admin);
  await crowd.leave(how);
  await expectNoStream();
  return inspected.held();
}

async function expectNoStream(): Promise<void> {
  await expect.poll(() => openStreams(platform().admin), { timeout: 5_000, interval: 50 }).toBe(0);
}

test("a thousand streams of silent work, closed or cut off again and again, leave nothing upstream", {
  timeout: 120_000,
}, async () => {
  await comeAndGo("close"); // caches and compiled code settle
  const before = await comeAndGo("cut");
  let after = before;
  for (const how of ["close", "cut", "close"] as const) after = await comeAndGo(how);
  expect(after.bytes - before.bytes).toBeLessThan(3 * 1_000 * LEFT_BYTES_PER_STREAM);
  expect(after.handles - before.handles).toBeLessThan(20);
  expect(after.fileDescriptors - before.fileDescriptors).toBeLessThan(20);
});

test("a revoked key's streams all end, and nothing of them stays upstream", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const { createApiKey: made } = await client.query(
    'mutation { createApiKey(input: { name: "crowd", scopes: ["workloads:read"] }) { key apiKey { id } } }',
  );
  const crowd = await gather(client.as(made.key));
  await client.query("mutation revoke($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { id } } }", {
    id: made.apiKey.id,
  });
  await crowd.leave("stay");
  await expectNoStream();
});

test("a revoked key's upload is refused though its sender goes on, and is no asset", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const { createApiKey: made } = await client.query(
    'mutation { createApiKey(input: { name: "sender", scopes: ["data:write"] }) { key apiKey { id } } }',
  );
  const request = http.request(`${client.origin}/v1/assets/upload?name=endless.bin`, {
    method: "POST",
    headers: { authorization: `Bearer ${made.key}`, "content-type": "application/octet-stream" },
  });
  const answered = new Promise<{ status?: number; error: string }>((resolve, reject) => {
    request.on("error", reject);
    request.on("response", async (response) => {
      const body = JSON.parse((await response.toArray()).join(""));
      resolve({ status: response.statusCode, error: body.error });
    });
  });
  answered.catch(() => {}); // awaited below, unless the test has failed before
  const uploads = () => platform().sql("select 1 from data.asset_upload");
  const sending = setInterval(() => request.write("x".repeat(1_000)), 50);
  try {
    await until("the upload is under way", async () => (await uploads()).length === 1);
    await client.query("mutation revoke($id: ID!) { revokeApiKey(input: { id: $id }) { apiKey { id } } }", {
      id: made.apiKey.id,
    });
    expect(await answered).toEqual({ status: 401, error: "key_ended" });
    await until("the upload is forgotten", async () => (await uploads()).length === 0);
  } finally {
    clearInterval(sending);
    request.destroy();
  }
  const { body } = await client.rest("listAssets");
  expect(JSON.stringify(body)).not.toContain("endless.bin");
});

test("streams of work that ends complete by themselves, and nothing of them stays upstream", {
  timeout: 60_000,
}, async () => {
  const crowd = await gather(platform().admin);
  await Promise.all(silent.map((id) => cancel(platform().admin, id)));
  await crowd.leave("stay");
  await expectNoStream();
});

test("an event of eight megabytes reaches its readers whole, and their streams go on", {
  timeout: 60_000,
}, async () => {
  const client = platform().admin;
  const id = await submit(client, script("true", { requirements: { gpu: "B200" } }));
  const streams = [client.overSocket(EVENTS, { id, after: 0 }), client.overEvents(EVENTS, { id, after: 0 })];
  for (const stream of streams) await stream.next();
  const large = "x".repeat(8 * 1024 * 1024);
  await platform().sql(
    `with numbered as (update compute.workload set event_seq = event_seq + 1 where id = $1 returning id, tenant_id, event_seq)
     insert into compute.workload_event (id, tenant_id, workload_id, seq, type, payload, created_at)
     select 'wev_large', tenant_id, id, event_seq, 'workload.note', jsonb_build_object('text', $2::text), now() from numbered`,
    [id, large],
  );
  await cancel(client, id);
  for (const stream of streams) {
    const types: string[] = [];
    for (const { workloadEvents } of await collect(stream)) {
      if (!workloadEvents.event) continue;
      const { type, payload } = workloadEvents.event;
      types.push(type);
      if (type === "workload.note") expect(payload.text.length).toBe(large.length);
    }
    expect(types.slice(types.indexOf("workload.note"))).toEqual(
      expect.arrayContaining(["workload.note", "workload.cancelled"]),
    );
  }
});

test("a platform that is told to stop sends a thousand readers away and ends in time", {
  timeout: 90_000,
}, async () => {
  silent = [await submit(platform().admin, script("true", { requirements: { gpu: "B200" } }))];
  const crowd = await gather(platform().admin);
  inspected.close(); // a process that is being debugged does not end
  const startedAt = performance.now();
  expect(await platform().stop()).toBe(0);
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  await crowd.leave("stay");
  await platform().start();
  await cancel(platform().admin, silent[0]!);
  expect(await ends(platform().admin, silent[0]!)).toMatchObject({ status: "cancelled" });
});
