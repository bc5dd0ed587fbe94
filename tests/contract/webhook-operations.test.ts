import { parse } from "graphql";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Actor } from "../../infra/kernel/actor.ts";
import { appendAccountEvent } from "../../subgraphs/data/account-event/append-account-event.ts";
import { MEMBER, STRANGER } from "../support/actors.ts";
import { insertAccount } from "../support/compute-fixtures.ts";
import { finishedRun } from "./finished-run.ts";
import { type RestFace, restFace } from "./rest-face.ts";

let face: RestFace;
beforeAll(async () => {
  face = await restFace();
  await insertAccount(face.compute.db, face.compute.clock.now());
  await face.compute.offer({});
}, 60_000);
afterAll(() => face?.close());
beforeEach(() =>
  face.compute.db.sql(
    "truncate data.webhook, data.webhook_delivery, data.account_event, data.account_stream, infra.outbox",
  ),
);

const put = (body: unknown, as: "member" | "team" | "stranger" = "team") => face.ask("putWebhook", { body, as });

async function graph(source: string, variables: Record<string, unknown> = {}, actor: Actor = MEMBER) {
  const request = { document: parse(source), variables, actor, requestId: "req_1" };
  // biome-ignore lint/suspicious/noExplicitAny: an answer's shape is its document's
  return (await face.gateway.execute(request)) as any;
}

const append = (tenantId: string = MEMBER.tenantId) =>
  face.compute.db.command((tx) =>
    appendAccountEvent(tx, {
      tenantId,
      type: "asset.ready",
      payload: { asset_id: "asset_1" },
      now: face.compute.clock.now(),
    }),
  );

describe("the webhook", () => {
  it("is written by any key of the team with a new secret each time, and read without it", async () => {
    const unset = await face.ask("getWebhook");
    expect([unset.status, unset.body.error]).toEqual([404, "webhook_not_configured"]);
    const made = await put({ url: "https://hooks.example.com/a?b=c" });
    expect(made.status).toBe(200);
    expect(made.body).toEqual({
      url: "https://hooks.example.com/a?b=c",
      enabled: true,
      secret: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const moved = await put({ url: "https://hooks.example.com/d" });
    expect(moved.body.secret).not.toBe(made.body.secret);
    const chosen = await put({ url: "https://hooks.example.com/d", secret: "chosen by the customer" });
    expect(chosen.body.secret).toBe("chosen by the customer");
    const read = await face.ask("getWebhook");
    expect([read.status, read.body]).toEqual([200, { url: "https://hooks.example.com/d", enabled: true }]);
    await face.compute.db.sql("update data.webhook set disabled_at = now()");
    expect((await face.ask("getWebhook")).body.enabled).toBe(false);
    expect((await put({ url: "https://hooks.example.com/d" })).body.enabled).toBe(true);
  });

  it("is deleted with a word, once", async () => {
    await put({ url: "https://hooks.example.com/" });
    const gone = await face.ask("deleteWebhook");
    expect([gone.status, gone.body]).toEqual([200, { status: "deleted" }]);
    const again = await face.ask("deleteWebhook");
    expect([again.status, again.body.error]).toEqual([404, "webhook_not_configured"]);
  });

  it("belongs to its team", async () => {
    await put({ url: "https://hooks.example.com/" });
    expect((await face.ask("getWebhook", { as: "stranger" })).status).toBe(404);
    expect((await face.ask("deleteWebhook", { as: "stranger" })).status).toBe(404);
    await put({ url: "https://elsewhere.example.com/" }, "stranger");
    expect((await face.ask("getWebhook")).body.url).toBe("https://hooks.example.com/");
  });

  it.each([
    [{}, "/url"],
    [{ url: 1 }, "/url"],
    [{ url: "http://hooks.example.com/" }, "/url"],
    [{ url: "https://10.0.0.1/" }, "/url"],
    [{ url: "https://me:pw@hooks.example.com/" }, "/url"],
    [{ url: "https://hooks.example.com/", secret: "too short" }, "/secret"],
    [{ url: "https://hooks.example.com/", secret: "not ASCII: ä, and long enough" }, "/secret"],
  ])("refuses %j and changes nothing", async (body, field) => {
    const answer = await put(body);
    expect([answer.status, answer.body.field]).toEqual([400, field]);
    expect((await face.ask("getWebhook")).status).toBe(404);
  });

  it("needs the scope to write", async () => {
    const reader: Actor = { ...MEMBER, scopes: ["data:read"] };
    for (const mutation of [
      'mutation { putWebhook(input: { url: "https://hooks.example.com/" }) { secret } }',
      "mutation { deleteWebhook { status } }",
      'mutation { redeliverWebhook(input: { id: "dlv_1" }) { delivery { id } } }',
    ])
      expect((await graph(mutation, {}, reader)).errors[0].extensions.code).toBe("insufficient_scope");
  });
});

const LIST = `query ($first: Int, $after: String, $state: WebhookDeliveryState) {
  webhookDeliveries(first: $first, after: $after, state: $state) {
    nodes { id eventId eventType state attempts dueAt endedAt lastError createdAt attemptLog { number at durationMs status error } }
    pageInfo { hasNextPage endCursor } } }`;

describe("deliveries", () => {
  it("are made for a workload's whole life, from the transaction that records each event", async () => {
    await put({ url: "https://hooks.example.com/" });
    const body = { source: { command: ["true"] }, outcome: { max_cost_usd: 1 } };
    await face.ask("createWorkload", { body, headers: { "idempotency-key": "hooked" } });
    const run = await finishedRun(face);
    const sent = await face.compute.db.sql<{ body: string }>("select body from data.webhook_delivery order by id");
    const bodies = sent.map((row) => JSON.parse(row.body));
    expect(bodies.map((b) => b.event_type)).toEqual([
      "workload.accepted",
      "workload.running",
      "workload.completed",
      "workload.settled",
    ]);
    expect(bodies[0]).toMatchObject({ status: "accepted", revision: 1, tenant: MEMBER.tenantId });
    for (const one of bodies.slice(1)) {
      expect(one).toMatchObject({
        workload_id: run.workloadId,
        payload: { status: one.status, revision: one.revision },
      });
      const [event] = await face.compute.db.sql("select type, payload from compute.workload_event where id = $1", [
        one.event_id,
      ]);
      expect(event).toEqual({ type: one.event_type, payload: one.payload });
    }
  });

  it("are listed newest first without bodies, by state, and only to their team", async () => {
    await put({ url: "https://hooks.example.com/" });
    for (let i = 0; i < 3; i++) await append();
    await face.compute.db.sql(
      "update data.webhook_delivery set state = 'failed' where id = (select max(id) from data.webhook_delivery)",
    );
    const first = (await graph(LIST, { first: 2 })).data.webhookDeliveries;
    const second = (await graph(LIST, { first: 2, after: first.pageInfo.endCursor })).data.webhookDeliveries;
    const all = [...first.nodes, ...second.nodes];
    expect([first.pageInfo.hasNextPage, second.pageInfo.hasNextPage]).toEqual([true, false]);
    expect(all.map((d) => d.id)).toEqual([...new Set(all.map((d) => d.id))].sort().reverse());
    expect(all[2]).toMatchObject({ eventType: "asset.ready", state: "pending", attempts: 0, attemptLog: [] });
    expect((await graph(LIST, { state: "failed" })).data.webhookDeliveries.nodes).toEqual([all[0]]);
    expect((await graph(LIST, {}, STRANGER)).data.webhookDeliveries.nodes).toEqual([]);
    const crooked = Buffer.from('["webhookDeliveries","x","y"]').toString("base64url");
    expect((await graph(LIST, { after: crooked })).errors[0].extensions.code).toBe("invalid_cursor");
  });

  it("are sent again on demand, by their team and while the webhook is on", async () => {
    await put({ url: "https://hooks.example.com/" });
    await append();
    const { db, clock } = face.compute;
    await db.sql(
      "update data.webhook_delivery set state = 'failed', tries = 16, attempts = 16, due_at = null, ended_at = now()",
    );
    const [{ id } = { id: "" }] = await db.sql<{ id: string }>("select id from data.webhook_delivery");
    const again = (by?: Actor, which = id) =>
      graph(
        "mutation ($id: ID!) { redeliverWebhook(input: { id: $id }) { delivery { id state attempts dueAt endedAt } } }",
        { id: which },
        by,
      );
    expect((await again(STRANGER)).errors[0].extensions.code).toBe("not_found");
    expect((await again(MEMBER, "dlv_nope")).errors[0].extensions.code).toBe("not_found");
    expect((await again()).data.redeliverWebhook.delivery).toEqual({
      id,
      state: "pending",
      attempts: 16,
      dueAt: clock.now().toISOString(),
      endedAt: null,
    });
    await db.sql("update data.webhook set disabled_at = now()");
    expect((await again()).errors[0].extensions.code).toBe("webhook_disabled");
    await face.ask("deleteWebhook");
    expect((await again()).errors[0].extensions.code).toBe("webhook_not_configured");
  });
});

describe("the account stream", () => {
  it("is a list of the team's events, oldest first", async () => {
    for (let i = 0; i < 3; i++) await append();
    await append(STRANGER.tenantId);
    const list =
      "query ($first: Int, $after: String) { accountEvents(first: $first, after: $after) { nodes { id seq type payload createdAt } pageInfo { hasNextPage endCursor } } }";
    const first = (await graph(list, { first: 2 })).data.accountEvents;
    const second = (await graph(list, { after: first.pageInfo.endCursor })).data.accountEvents;
    expect([...first.nodes, ...second.nodes].map((e) => e.seq)).toEqual([1, 2, 3]);
    expect(second.nodes[0]).toMatchObject({ type: "asset.ready", payload: { asset_id: "asset_1" } });
    expect((await graph(list, { after: "junk" })).errors[0].extensions.code).toBe("invalid_cursor");
  });

  it("says that work was refused for want of money, with the numbers of the refusal", async () => {
    const { db } = face.compute;
    const refused = async (key: string) => {
      const body = { source: { command: ["true"] }, outcome: { max_cost_usd: 1 } };
      const answer = await face.ask("createWorkload", { body, headers: { "idempotency-key": key } });
      expect(answer.status).toBe(402);
      return answer.body;
    };
    const told = async () => (await graph("{ accountEvents { nodes { type payload } } }")).data.accountEvents.nodes;
    await db.sql("update compute.account set payment_method = false");
    await refused("poor");
    await db.sql("update compute.account set payment_method = true, monthly_cap_micros = 1");
    const { remaining_headroom_usd, monthly_spend_cap_usd } = await refused("capped");
    await refused("capped-again");
    await db.sql("update compute.account set monthly_cap_micros = null");
    expect(await told()).toMatchObject([
      { type: "account.payment_required", payload: { code: "payment_method_required" } },
      {
        type: "account.spend_cap_reached",
        payload: { code: "budget_exceeded", remaining_headroom_usd, monthly_spend_cap_usd: 0.000001 },
      },
    ]);
    expect(monthly_spend_cap_usd).toBe(0.000001);
  });

  it("is followed from any number, without gap or repeat, and goes on when it is resumed", async () => {
    const follow = (after: number | null) =>
      face.gateway.subscribe({
        document: parse("subscription ($after: Int) { accountEvents(after: $after) { cursor event { seq type } } }"),
        variables: { after },
        actor: MEMBER,
        requestId: "req_1",
      });
    for (let i = 0; i < 3; i++) await append();
    const seen: number[] = [];
    for (const upTo of [2, 5, 8]) {
      const opened = await follow(seen.at(-1) ?? null);
      if (!(Symbol.asyncIterator in opened)) throw new Error(JSON.stringify(opened));
      const stream = opened[Symbol.asyncIterator]();
      const appended = upTo > 2 ? Promise.all([append(), append(), append()]) : null;
      while ((seen.at(-1) ?? 0) < upTo) {
        const { value } = await stream.next();
        seen.push(value.data.accountEvents.cursor);
      }
      await appended;
      await stream.return?.();
    }
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const refused = await follow(-1);
    expect(JSON.stringify(refused)).toContain("invalid_cursor");
  }, 20_000);
});
