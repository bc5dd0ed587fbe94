import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { OfferedEvent } from "../../../infra/db/offered-event.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { teamKey } from "../../../tests/support/actors.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { ACCOUNT_EVENTS, isDelivered } from "../account-event/event-types.ts";
import { dataEntities } from "../entities.ts";
import { SecretBox } from "../secret/secret-box.ts";
import { putWebhook } from "../webhook/webhook.commands.ts";
import { WebhookDelivery } from "./delivery.entity.ts";
import { deliveryBody } from "./delivery-body.ts";
import { offerDeliveries } from "./offer-delivery.ts";
import { pendingTeams } from "./queue-deliveries.ts";
import { sweepDeliveries } from "./sweep-deliveries.ts";

let database: TestDatabase;
const box = new SecretBox({ id: "mk-1", key: randomBytes(32) });
const now = new Date("2026-03-01T12:00:00Z");
const event = (over: Partial<OfferedEvent> = {}): OfferedEvent => ({
  ...{ tenantId: "team_1", eventId: "evt_1", type: "workload.completed", subject: { workload_id: "wl_1" }, now },
  payload: { status: "completed", revision: 7, stage_id: "main", generation: 2, message: null },
  ...over,
});

beforeAll(async () => {
  database = await testDatabase(dataEntities);
});
afterAll(() => database?.close());
beforeEach(async () => {
  await database.db.sql("truncate data.webhook_delivery, data.webhook");
});

async function put(tenantId: string): Promise<void> {
  const deps = { db: database.db, box, exceptions: new PrivateExceptions([]) };
  await putWebhook(deps, teamKey(tenantId), { url: "https://example.com/" }, now);
}
const offer = (over?: Partial<OfferedEvent>) => database.db.command((tx) => offerDeliveries(tx, [event(over)]));

test("a body names what it is about beside the payload", () => {
  expect(JSON.parse(deliveryBody("dlv_1", event()))).toEqual({
    ...{ delivery_id: "dlv_1", event_id: "evt_1", event_type: "workload.completed", created_at: now.toISOString() },
    ...{ tenant: "team_1", workload_id: "wl_1", status: "completed", revision: 7, generation: 2 },
    payload: event().payload,
  });
});

test("a payload that is too large is left out, and the body says so", () => {
  const fits = "ä".repeat(100_000);
  const large = "ä".repeat(200_000);
  expect(JSON.parse(deliveryBody("dlv_1", event({ payload: { message: fits } }))).payload.message).toBe(fits);
  const body = deliveryBody("dlv_1", event({ payload: { status: "failed", message: large } }));
  expect(Buffer.byteLength(body)).toBeLessThan(LIMITS.webhookBodyBytes);
  expect(JSON.parse(body)).toMatchObject({ workload_id: "wl_1", status: "failed", payload: {}, payload_omitted: true });
});

test("only the types of the catalogue are sent, each once, and only to who has a webhook", async () => {
  expect(
    ["workload.planning", "sandbox.ready", "asset.importing", "webhook.disabled", "constructor"].map(isDelivered),
  ).toEqual(Array(5).fill(false));
  expect(Object.keys(ACCOUNT_EVENTS).filter(isDelivered)).toHaveLength(11);
  await put("team_1");
  await offer();
  await offer({ type: "workload.planning" });
  await offer({ tenantId: "team_2" });
  expect(await database.db.rows(WebhookDelivery, "")).toMatchObject([{ tenantId: "team_1", state: "pending" }]);
});

test("teams with something to send are found by one step each, and a page goes on after the last", async () => {
  for (const tenantId of ["team_1", "team_2", "team_3"]) {
    await put(tenantId);
    for (let i = 0; i < 5; i++) await offer({ tenantId });
  }
  await database.db.sql("update data.webhook set disabled_at = $1 where tenant_id = 'team_2'", [now]);
  await database.db.sql("update data.webhook_delivery set due_at = $1 where tenant_id = 'team_3'", [
    new Date(now.getTime() + 1),
  ]);
  const first = await pendingTeams(database.db, now, "", 2);
  expect(first).toEqual([
    { tenantId: "team_1", on: true, due: true },
    { tenantId: "team_2", on: false, due: true },
  ]);
  expect(await pendingTeams(database.db, now, "team_2", 2)).toEqual([{ tenantId: "team_3", on: true, due: false }]);
});

test("deliveries that are over go after thirty days, a bounded number at once; pending ones stay", async () => {
  await put("team_1");
  for (let i = 0; i < 5; i++) await offer();
  await database.db.sql(
    "update data.webhook_delivery set state = 'delivered' where id <> (select min(id) from data.webhook_delivery)",
  );
  const edge = new Date(now.getTime() + LIMITS.webhookDeliveryKeptMs);
  expect(await sweepDeliveries(database.db, edge)).toBe(0);
  const past = new Date(edge.getTime() + 1);
  expect([await sweepDeliveries(database.db, past, 3), await sweepDeliveries(database.db, past, 3)]).toEqual([3, 1]);
  expect(await database.db.rows(WebhookDelivery, "")).toMatchObject([{ state: "pending" }]);
});
