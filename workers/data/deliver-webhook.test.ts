import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { openPost, type PostPort } from "../../infra/net/post-https.ts";
import { PrivateExceptions } from "../../infra/net/public-address.ts";
import type { Outcome } from "../../infra/queue/implement-job.ts";
import { allEntities } from "../../roles/entities.ts";
import { AccountEvent } from "../../subgraphs/data/account-event/account-event.entity.ts";
import { appendAccountEvent } from "../../subgraphs/data/account-event/append-account-event.ts";
import { CLAIM_MS } from "../../subgraphs/data/delivery/attempt.commands.ts";
import { WebhookDelivery } from "../../subgraphs/data/delivery/delivery.entity.ts";
import { queueDeliveries } from "../../subgraphs/data/delivery/queue-deliveries.ts";
import { RETRY_WAITS_MS } from "../../subgraphs/data/delivery/retry-schedule.ts";
import { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";
import { deleteWebhook, putWebhook } from "../../subgraphs/data/webhook/webhook.commands.ts";
import { Webhook } from "../../subgraphs/data/webhook/webhook.entity.ts";
import { teamKey } from "../../tests/support/actors.ts";
import { type Authority, testAuthority } from "../../tests/support/authority.ts";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { hang, httpsReceiver, isSigned, type Receiver, status } from "../../tests/support/https-receiver.ts";
import {
  type JobWorld,
  jobContext,
  survivesBeingRunTwice,
  survivesDyingAtEveryStep,
} from "../../tests/support/jobs.ts";
import { deliverWebhookJob } from "./deliver-webhook.ts";
import { dueDeliveries } from "./due-deliveries.ts";

const box = new SecretBox({ id: "mk-1", key: randomBytes(32) });
const SECRET = "a secret of the receiver";
const LOCAL = new PrivateExceptions(["localhost"]);
const HOUR_MS = 3_600_000;

let authority: Authority;
let receiver: Receiver;
let database: TestDatabase;
let clock: FakeClock;
let poster: PostPort;

beforeAll(async () => {
  [authority, database] = await Promise.all([testAuthority(), testDatabase(allEntities)]);
  poster = openPost({ exceptions: LOCAL, ca: authority.caPem });
});
afterAll(() => database?.close());
beforeEach(async () => {
  receiver = await httpsReceiver(authority);
  clock = new FakeClock("2026-03-01T12:00:00Z");
  await database.db.sql(
    "truncate data.account_event, data.account_stream, data.webhook_delivery, data.webhook, infra.outbox",
  );
});
afterEach(() => receiver.close());

function put(tenantId = "team_1", url = `${receiver.origin}/hook`): Promise<unknown> {
  const deps = { db: database.db, box, exceptions: LOCAL };
  return putWebhook(deps, teamKey(tenantId), { url, secret: SECRET }, clock.now());
}

async function happen(tenantId = "team_1"): Promise<void> {
  await database.db.command((tx) =>
    appendAccountEvent(tx, { tenantId, type: "asset.ready", payload: { asset_id: "asset_1" }, now: clock.now() }),
  );
}

const run = (deliveryId: string, world: JobWorld = { db: database.db, clock }): Promise<Outcome> =>
  deliverWebhookJob({ box, poster, random: () => 0.5 }).body({ deliveryId }, jobContext(world));

const deliveries = (tenantId = "team_1") =>
  database.db.rows(WebhookDelivery, "where t.tenant_id = $1 order by t.id", [tenantId]);
const only = async () => (await deliveries())[0]!;
const webhook = async () => (await database.db.row(Webhook, "where t.tenant_id = 'team_1'"))!;
const reconcile = () => dueDeliveries({ db: database.db, clock }).run(new AbortController().signal, null);

/** What is queued, as a queue would hand it out, and takes it. */
async function queued(): Promise<string[]> {
  const rows = await database.db.sql<{ payload: { deliveryId: string } }>(
    "delete from infra.outbox where job = 'data.deliverWebhook' returning payload",
  );
  return rows.map(({ payload }) => payload.deliveryId);
}

/** Runs what is due until nothing is. */
async function work(): Promise<void> {
  await reconcile();
  for (let ids = await queued(); ids.length > 0; ids = await queued()) await Promise.all(ids.map((id) => run(id)));
}

test("an event reaches the receiver once, signed at the time of sending", async () => {
  await put();
  await happen();
  await clock.advance(90_000);
  await work();
  await work();
  const delivery = await only();
  expect(delivery).toMatchObject({ state: "delivered", attempts: 1, dueAt: null, claimedUntil: null, lastError: null });
  expect(delivery.attemptLog).toMatchObject([{ number: 1, at: "2026-03-01T12:01:30.000Z", status: 204, error: null }]);
  const [one, ...others] = receiver.received;
  expect(others).toEqual([]);
  expect(one).toMatchObject({
    path: "/hook",
    body: delivery.body,
    headers: {
      "content-type": "application/json",
      "x-nodus-timestamp": String(Date.parse("2026-03-01T12:01:30Z") / 1000),
      "x-nodus-attempt": "1",
      "x-nodus-delivery": delivery.id,
      "x-nodus-event": "asset.ready",
    },
  });
  expect(isSigned(one!, SECRET)).toBe(true);
});

test("a flaky receiver gets the same bytes again after a wait, signed anew, until it accepts", async () => {
  await put();
  await happen();
  receiver.answer(status(500));
  await work();
  expect(await only()).toMatchObject({ state: "pending", lastError: "refused" });
  expect(await webhook()).toMatchObject({ failures: 1, failingSince: clock.now() });
  await clock.advance(8_999);
  await work();
  expect(receiver.received).toHaveLength(1);
  await clock.advance(1);
  receiver.answer(status(200));
  await work();
  expect(await only()).toMatchObject({ state: "delivered", attempts: 2, lastError: null });
  expect(await webhook()).toMatchObject({ failures: 0, failingSince: null });
  const [first, second] = receiver.received;
  expect(second!.body).toBe(first!.body);
  expect([first, second].map((one) => one!.headers["x-nodus-attempt"])).toEqual(["1", "2"]);
  expect(second!.headers["x-nodus-signature"]).not.toBe(first!.headers["x-nodus-signature"]);
  expect(isSigned(second!, SECRET)).toBe(true);
});

test("a receiver that fails for a day is tried on schedule, then the webhook is off, says so, and starts with the next PUT", async () => {
  await put();
  await happen();
  const bornAt = clock.now().getTime();
  receiver.answer(status(503));
  const triedAfterMs: number[] = [];
  for (let delivery = await only(); delivery.state === "pending"; delivery = await only()) {
    await clock.advance(delivery.dueAt!.getTime() - clock.now().getTime());
    triedAfterMs.push(clock.now().getTime() - bornAt);
    await work();
  }
  expect(triedAfterMs.at(-1)).toBe(24 * HOUR_MS);
  const gaps = triedAfterMs.slice(1).map((at, i) => at - triedAfterMs[i]!);
  expect(gaps.slice(0, 12)).toEqual(RETRY_WAITS_MS.map((wait) => wait * 0.9));
  const failures = triedAfterMs.length;
  expect(await only()).toMatchObject({
    state: "failed",
    attempts: failures,
    lastError: "refused",
    endedAt: clock.now(),
  });
  expect((await webhook()).disabledAt).toEqual(clock.now());
  const [told] = await database.db.rows(AccountEvent, "where t.type = 'webhook.disabled'");
  expect(told!.payload).toEqual({ since: "2026-03-01T12:00:00.000Z", last_status: 503, failures });
  await happen();
  expect(await deliveries()).toHaveLength(1);
  await put();
  receiver.answer(status(204));
  await happen();
  await work();
  expect((await deliveries()).map(({ state }) => state)).toEqual(["failed", "delivered"]);
});

test("one event that a receiver never accepts does not turn off a webhook that accepts others", async () => {
  await put();
  await happen();
  const [stubborn] = await deliveries();
  receiver.answer((received, response) =>
    response.writeHead(received.headers["x-nodus-delivery"] === stubborn!.id ? 400 : 204).end(),
  );
  for (let delivery = await only(); delivery.state === "pending"; delivery = await only()) {
    await clock.advance(delivery.dueAt!.getTime() - clock.now().getTime());
    await happen();
    await work();
  }
  expect(await only()).toMatchObject({ state: "failed", lastError: "refused" });
  expect(await webhook()).toMatchObject({ disabledAt: null });
});

test("410 turns the webhook off at once, and what was pending is given up", async () => {
  await put();
  await happen();
  receiver.answer(status(410));
  await happen();
  await work();
  await reconcile();
  expect((await webhook()).disabledAt).toEqual(clock.now());
  expect((await deliveries()).map(({ state }) => state)).toEqual(["failed", "failed"]);
  expect(await database.db.rows(AccountEvent, "where t.type = 'webhook.disabled'")).toHaveLength(1);
});

test("a redirect is not followed, and the word says what happened", async () => {
  const other = await httpsReceiver(authority);
  try {
    await put();
    await happen();
    receiver.answer(status(302, { location: `${other.origin}/` }));
    await work();
    expect(await only()).toMatchObject({ state: "pending", lastError: "redirected" });
    expect(other.received).toEqual([]);
  } finally {
    await other.close();
  }
});

test("a name that leads to a private address is judged when it is sent, whatever was accepted", async () => {
  await put();
  await happen();
  const strict = openPost({ exceptions: new PrivateExceptions([]), ca: authority.caPem });
  await deliverWebhookJob({ box, poster: strict, random: () => 0 }).body(
    { deliveryId: (await only()).id },
    jobContext({ db: database.db, clock }),
  );
  expect(await only()).toMatchObject({ lastError: "private_address" });
  expect(receiver.received).toEqual([]);
});

test("what a deleted webhook had to send is given up, and a new one does not get it", async () => {
  await put();
  await happen();
  await deleteWebhook(database.db, teamKey("team_1"), clock.now());
  await put();
  await work();
  expect(await only()).toMatchObject({ state: "failed", lastError: "webhook_off", endedAt: clock.now() });
  expect(receiver.received).toEqual([]);
});

test("a hanging receiver has few of its team's deliveries under way and delays no other team", async () => {
  const quick = await httpsReceiver(authority);
  try {
    receiver.answer(hang);
    await put("team_1");
    await put("team_2", quick.origin);
    for (let i = 0; i < 30; i++) await happen("team_1");
    for (let i = 0; i < 5; i++) await happen("team_2");
    await reconcile();
    const ids = await queued();
    expect(ids).toHaveLength(LIMITS.webhookDeliveriesAtOnce + 5);
    const abort = new AbortController();
    const job = deliverWebhookJob({ box, poster, random: () => 0 });
    const context = { ...jobContext({ db: database.db, clock }), signal: abort.signal };
    const runs = ids.map((deliveryId) => job.body({ deliveryId }, context));
    await expect.poll(() => quick.received.length).toBe(5);
    await expect.poll(() => receiver.open.now).toBe(LIMITS.webhookDeliveriesAtOnce);
    await reconcile();
    expect(await queued()).toEqual([]);
    abort.abort();
    await Promise.all(runs);
    // A process that goes down takes no try away from anybody.
    expect(await webhook()).toMatchObject({ failures: 0 });
    expect((await deliveries()).every(({ state, tries }) => state === "pending" && tries === 0)).toBe(true);
    await database.db.sql("update data.webhook set failures = 1");
    await reconcile();
    expect(await queued()).toHaveLength(LIMITS.webhookDeliveriesAtOnceFailing);
  } finally {
    await quick.close();
  }
});

test("a backlog flows on as room comes free", async () => {
  await put();
  for (let i = 0; i < 30; i++) await happen();
  await work();
  expect(receiver.received).toHaveLength(30);
  expect(receiver.open.most).toBeLessThanOrEqual(LIMITS.webhookDeliveriesAtOnce);
});

test("a job that was lost is queued again, and a sender that died is followed by another with the same delivery", async () => {
  await put();
  await happen();
  expect(await queueDeliveries(database.db, "team_1", clock.now())).toBe(1);
  expect(await queueDeliveries(database.db, "team_1", clock.now())).toBe(0);
  await queued();
  await clock.advance(60_000);
  expect(await queueDeliveries(database.db, "team_1", clock.now())).toBe(1);
  const dying: PostPort = {
    post: async (ask) => {
      await poster.post(ask);
      throw new Error("killed after sending");
    },
  };
  const [id] = await queued();
  const dead = deliverWebhookJob({ box, poster: dying, random: () => 0 });
  await expect(dead.body({ deliveryId: id! }, jobContext({ db: database.db, clock }))).rejects.toThrow("killed");
  await work();
  expect(receiver.received).toHaveLength(1);
  await clock.advance(CLAIM_MS);
  await work();
  expect(receiver.received.map(({ headers }) => headers["x-nodus-attempt"])).toEqual(["1", "2"]);
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
  expect((await only()).attemptLog).toMatchObject([
    { number: 1, status: null, error: null, durationMs: null },
    { number: 2, status: 204, error: null },
  ]);
});

const trial = {
  setup: async () => {
    const own = await testDatabase(allEntities);
    const world = { db: own.db, clock: new FakeClock("2026-03-01T12:00:00Z"), own, ports: { poster } };
    const deps = { db: own.db, box, exceptions: LOCAL };
    await putWebhook(deps, teamKey("team_1"), { url: receiver.origin, secret: SECRET }, world.clock.now());
    await own.db.command((tx) =>
      appendAccountEvent(tx, { tenantId: "team_1", type: "asset.ready", payload: {}, now: world.clock.now() }),
    );
    receiver.received.length = 0;
    return world;
  },
  run: async (world: World) => {
    const [delivery] = await world.own.db.rows(WebhookDelivery, "");
    const job = deliverWebhookJob({ box, poster: world.ports.poster, random: () => 0 });
    return job.body({ deliveryId: delivery!.id }, jobContext(world));
  },
  reconcile: async (world: World) => {
    await world.clock.advance(60_000);
    await dueDeliveries({ db: world.own.db, clock: world.clock }).run(new AbortController().signal, null);
    const due = await world.own.db.sql("select 1 from infra.outbox where job = 'data.deliverWebhook'");
    if (due.length > 0) await trial.run(world);
  },
  assert: async (world: World) => {
    const [delivery] = await world.own.db.rows(WebhookDelivery, "");
    expect(delivery).toMatchObject({ state: "delivered", claimedUntil: null });
    expect(receiver.received.length).toBeGreaterThan(0);
    expect(new Set(receiver.received.map(({ body }) => body))).toEqual(new Set([delivery!.body]));
    expect(receiver.received.length).toBeLessThanOrEqual(delivery!.attempts);
  },
  teardown: (world: World) => world.own.close(),
};
interface World extends JobWorld {
  own: TestDatabase;
  ports: { poster: PostPort };
}

test("a delivery survives being run twice", () => survivesBeingRunTwice<World>(trial), 60_000);

test("a delivery survives dying at every step", async () => {
  const steps = await survivesDyingAtEveryStep<World>(trial);
  expect(steps).toContain("poster.post, answered");
}, 60_000);
