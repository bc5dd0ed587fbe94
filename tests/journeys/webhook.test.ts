import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isFromNodus } from "../../docs/examples/verify-webhook.ts";
import { testAuthority } from "../support/authority.ts";
import { hang, httpsReceiver, type Received, type Receiver, status } from "../support/https-receiver.ts";
import { Platform } from "../support/platform.ts";
import { newDataFolder } from "../support/platform-place.ts";
import { until } from "../support/until.ts";
import { script, settles, submit } from "../support/workloads.ts";

let receiver: Receiver;
let platform: Platform;

beforeAll(async () => {
  const authority = await testAuthority();
  receiver = await httpsReceiver(authority);
  const dataDir = newDataFolder();
  const caFile = path.join(dataDir, "receiver-ca.pem");
  writeFileSync(caFile, authority.caPem, { mode: 0o644 });
  const settings = { NODE_EXTRA_CA_CERTS: caFile, NODUS_ALLOW_PRIVATE_HOSTS: "localhost" };
  platform = await Platform.start(settings, { dataDir });
}, 120_000);
afterAll(async () => {
  await platform?.dispose();
  await receiver?.close();
});

const typesOf = (workloadId: string) =>
  receiver.received.map((one) => JSON.parse(one.body)).filter((body) => body.workload_id === workloadId);

async function put(): Promise<string> {
  const answer = await platform.admin.rest("putWebhook", { body: { url: `${receiver.origin}/hook` } });
  expect(answer.status).toBe(200);
  return answer.body.secret;
}

function isGenuine(one: Received, secret: string): boolean {
  const { "x-nodus-timestamp": timestamp, "x-nodus-signature": signature } = one.headers;
  return isFromNodus(secret, String(timestamp), String(signature), Buffer.from(one.body, "utf8"));
}

test("a receiver hears of a workload from its acceptance to its settlement, genuinely signed", async () => {
  const secret = await put();
  const id = await submit(platform.admin, script("echo hello"));
  await settles(platform.admin, id);
  const wanted = ["workload.accepted", "workload.completed", "workload.running", "workload.settled"];
  await until("all four have arrived", () => typesOf(id).length >= wanted.length);
  expect(
    typesOf(id)
      .map((body) => body.event_type)
      .sort(),
  ).toEqual(wanted);
  expect(receiver.received.every((one) => isGenuine(one, secret))).toBe(true);
  const noted = () => platform.admin.query("{ webhookDeliveries { nodes { state attempts } } }");
  const isOver = ({ state }: { state: string }) => state !== "pending";
  await until("each answer is noted", async () => (await noted()).webhookDeliveries.nodes.every(isOver));
  expect((await noted()).webhookDeliveries.nodes).toEqual(Array(4).fill({ state: "delivered", attempts: 1 }));
}, 60_000);

test("a platform killed while the receiver thinks sends the same delivery again when it is back", async () => {
  const secret = await put();
  receiver.answer(hang);
  const id = await submit(platform.admin, script("sleep 0.1"));
  await until("the receiver has the first of them", () => typesOf(id).length > 0);
  await platform.kill();
  const before = typesOf(id).map((body) => body.delivery_id);
  receiver.answer(status(204));
  await platform.start();
  await until(
    "it has arrived again, with all the others",
    () => {
      const ids = typesOf(id).map((body) => body.delivery_id);
      return before.every((one) => ids.filter((other) => other === one).length > 1) && new Set(ids).size === 4;
    },
    { timeoutMs: 60_000 },
  );
  const bodies = new Map<string, string>();
  for (const { body } of receiver.received.filter((one) => one.body.includes(id))) {
    const deliveryId: string = JSON.parse(body).delivery_id;
    expect(bodies.get(deliveryId) ?? body).toBe(body);
    bodies.set(deliveryId, body);
  }
  expect(isGenuine(receiver.received.at(-1)!, secret)).toBe(true);
}, 120_000);
