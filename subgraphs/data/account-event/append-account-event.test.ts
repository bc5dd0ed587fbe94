import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { teamKey } from "../../../tests/support/actors.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { WebhookDelivery } from "../delivery/delivery.entity.ts";
import { dataEntities } from "../entities.ts";
import { SecretBox } from "../secret/secret-box.ts";
import { putWebhook, type WebhookDeps } from "../webhook/webhook.commands.ts";
import { AccountEvent } from "./account-event.entity.ts";
import { appendAccountEvent, takeOfferedEvents } from "./append-account-event.ts";

let database: TestDatabase;
const now = new Date("2026-03-01T12:00:00Z");
const actor = teamKey("team_1");
const box = new SecretBox({ id: "mk-1", key: randomBytes(32) });

let deps: WebhookDeps;

beforeAll(async () => {
  database = await testDatabase(dataEntities);
  deps = { db: database.db, box, exceptions: new PrivateExceptions([]) };
});
beforeEach(async () => {
  await database.db.sql("truncate data.account_event, data.account_stream, data.webhook_delivery, data.webhook");
});
afterAll(() => database?.close());

const ready = (tenantId = "team_1") =>
  database.db.command((tx) =>
    appendAccountEvent(tx, {
      tenantId,
      type: "asset.ready",
      payload: { asset_id: "asset_1", name: "data", stored_bytes: 12 },
      now,
    }),
  );
const deliveries = () => database.db.rows(WebhookDelivery, "order by t.id");

test("events of a team are numbered without gaps by writers at the same time, each team for itself", async () => {
  await Promise.all([...Array.from({ length: 20 }, () => ready()), ready("team_2")]);
  const failed = database.db.command(async (tx) => {
    await appendAccountEvent(tx, { tenantId: "team_1", type: "asset.deleted", payload: {}, now });
    throw new Error("undone");
  });
  await expect(failed).rejects.toThrow("undone");
  await ready();
  const events = await database.db.rows(AccountEvent, "where t.tenant_id = 'team_1' order by t.seq");
  expect(events.map(({ seq }) => seq)).toEqual(Array.from({ length: 21 }, (_, k) => k + 1));
  expect(events[0]).toMatchObject({ type: "asset.ready", createdAt: now, payload: { asset_id: "asset_1" } });
  expect(await database.db.rows(AccountEvent, "where t.tenant_id = 'team_2'")).toHaveLength(1);
  expect(await deliveries()).toEqual([]);
});

test("a team with a webhook gets a delivery for the types that are sent, with its ids beside the payload", async () => {
  await putWebhook(deps, actor, { url: "https://example.com/" }, now);
  await ready();
  await database.db.command((tx) =>
    appendAccountEvent(tx, { tenantId: "team_1", type: "asset.deleted", payload: { asset_id: "asset_1" }, now }),
  );
  const [delivery, ...others] = await deliveries();
  expect(others).toEqual([]);
  const [event] = await database.db.rows(AccountEvent, "where t.type = 'asset.ready'");
  expect(delivery).toMatchObject({ state: "pending", attempts: 0, dueAt: now, eventId: event!.id });
  expect(JSON.parse(delivery!.body!)).toEqual({
    delivery_id: delivery!.id,
    event_id: event!.id,
    event_type: "asset.ready",
    created_at: now.toISOString(),
    tenant: "team_1",
    asset_id: "asset_1",
    payload: { asset_id: "asset_1", name: "data", stored_bytes: 12 },
  });
});

test("a webhook that is off gets nothing", async () => {
  await putWebhook(deps, actor, { url: "https://example.com/" }, now);
  await database.db.sql("update data.webhook set disabled_at = $1", [now]);
  await ready();
  expect(await deliveries()).toEqual([]);
});

test("what other domains offer goes to the account stream if it is an account event, and is only sent otherwise", async () => {
  await putWebhook(deps, actor, { url: "https://example.com/" }, now);
  const offer = (type: string, eventId: string) =>
    database.db.command((tx) =>
      takeOfferedEvents(tx, [
        {
          ...{ tenantId: "team_1", type, eventId, subject: { workload_id: "wl_1" }, now },
          payload: { status: "x" },
        },
      ]),
    );
  await offer("benchmark.completed", "evt_1");
  await offer("workload.running", "evt_2");
  await offer("workload.planning", "evt_3");
  const events = await database.db.rows(AccountEvent, "");
  expect(events).toMatchObject([{ id: "evt_1", payload: { workload_id: "wl_1", status: "x" } }]);
  expect((await deliveries()).map((delivery) => delivery.eventId)).toEqual(["evt_1", "evt_2"]);
});

test("what clients cause by repeating a request is recorded once an hour, whoever else repeats it at the same time", async () => {
  const refuse = (at: Date) =>
    database.db.command((tx) =>
      appendAccountEvent(tx, { tenantId: "team_1", type: "account.payment_required", payload: {}, now: at }),
    );
  const hour = new Date(now.getTime() + 3_600_000);
  await Promise.all([refuse(now), refuse(now), refuse(now), ready()]);
  await refuse(new Date(hour.getTime() - 1));
  await refuse(hour);
  const events = await database.db.rows(AccountEvent, "order by t.seq");
  expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  expect(events.filter(({ type }) => type === "account.payment_required").map(({ createdAt }) => createdAt)).toEqual([
    now,
    hour,
  ]);
});

test("an event from before the wall clock was set back keeps no other from being recorded", async () => {
  const refuse = (at: Date) =>
    database.db.command((tx) =>
      appendAccountEvent(tx, { tenantId: "team_1", type: "account.payment_required", payload: {}, now: at }),
    );
  const before = new Date(now.getTime() + 3_600_000);
  await refuse(before);
  await refuse(now);
  await refuse(now);
  const events = await database.db.rows(AccountEvent, "order by t.seq");
  expect(events.map(({ createdAt }) => createdAt)).toEqual([before, now]);
});
