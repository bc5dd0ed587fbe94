import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import websocket from "@fastify/websocket";
import Fastify, { type FastifyInstance } from "fastify";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { FakeClock } from "../infra/kernel/clock.ts";
import { Sleepers } from "../infra/live/wakeups.ts";
import { openDiskStore } from "../infra/objects/disk-store.ts";
import { type IntakeFrame, MAX_FRAME_BYTES } from "../infra/runner/protocol.ts";
import { createLogger } from "../infra/telemetry/logger.ts";
import { requestStop } from "../subgraphs/compute/lifecycle/finish.commands.ts";
import { UnitObservation } from "../subgraphs/compute/output/unit-observation.entity.ts";
import { insertAccount, insertPlaced, type Placed } from "../tests/support/compute-fixtures.ts";
import type { TestDatabase } from "../tests/support/database.ts";
import { lifecycleDatabase } from "../tests/support/lifecycle-world.ts";
import { lifecycleDeps, MiniatureHost } from "../tests/support/miniature-host.ts";
import { registerIntake } from "./server.ts";
import { createIntake, type Intake } from "./session-hub.ts";

let database: TestDatabase;
let app: FastifyInstance;
let intake: Intake;
let folder: string;
let origin: string;
const clock = new FakeClock("2026-03-01T00:00:00Z");

let sleepers: Sleepers;
beforeAll(async () => {
  database = await lifecycleDatabase();
  const { db } = database;
  sleepers = new Sleepers((error) => {
    throw error;
  });
  db.announceTo((topic) => sleepers.wake(topic));
  const wakeups = { on: (topic: string, f: () => void) => sleepers.on(topic, f) };
  const logger = createLogger({ level: "silent", role: "test" });
  intake = createIntake({ ...lifecycleDeps(db, clock), logger, wakeups });
  folder = await mkdtemp(path.join(tmpdir(), "nodus-intake-"));
  const store = await openDiskStore(folder);
  app = Fastify();
  await app.register(websocket, { options: { maxPayload: MAX_FRAME_BYTES } });
  await registerIntake(app, { db, intake, assets: store, outputs: store, clock, hostsWithoutOrder: 10 });
  await app.listen({ port: 0, host: "127.0.0.1" });
  origin = `127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  await insertAccount(db, clock.now());
});
afterAll(async () => {
  await app.close();
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

let placed: Placed;
const peers: Peer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.socket.terminate();
  await expect.poll(() => intake.openOrders, { timeout: 10_000 }).toBe(0);
});
beforeEach(async () => {
  placed = await insertPlaced(database.db, clock.now());
});

/** A connection that says what it is told to and keeps what it hears. */
class Peer {
  readonly heard: IntakeFrame[] = [];
  readonly socket: WebSocket;
  readonly closed: Promise<number>;

  constructor() {
    peers.push(this);
    this.socket = new WebSocket(`ws://${origin}/runner/v1/stream`);
    this.socket.on("message", (data: Buffer) => void this.heard.push(JSON.parse(data.toString())));
    this.socket.on("error", () => {}); // a cut connection is what some tests are about; `closed` tells
    this.closed = new Promise((resolve) => this.socket.on("close", resolve));
  }

  static async connect(): Promise<Peer> {
    const peer = new Peer();
    await new Promise((resolve) => peer.socket.once("open", resolve));
    return peer;
  }

  async say(frame: object | string, answers = this.heard.length + 1): Promise<IntakeFrame> {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
    await expect.poll(() => this.heard.length, { timeout: 10_000 }).toBeGreaterThanOrEqual(answers);
    return this.heard.at(-1)!;
  }

  async open(order: Placed): Promise<{ session: string; host: MiniatureHost }> {
    const answer = await this.say({ type: "open", orderId: order.orderId, token: order.token, protocol: 1 });
    if (answer.type !== "opened") throw new Error(JSON.stringify(answer));
    // Only numbers records; what it makes goes over the wire.
    const host = new MiniatureHost(lifecycleDeps(database.db, clock), {} as MiniatureHost["session"]);
    return { session: answer.session, host };
  }
}

describe("a frame", () => {
  test.each([
    ["that is no JSON", "{"],
    ["that is nested without end", "[".repeat(1_000_000)],
    ["of no type", "{}"],
    ["with a number for an order", '{"type":"open","orderId":1,"token":"x","protocol":1}'],
    [
      "with an infinite time",
      '{"type":"records","orderId":"o","session":"s","records":[{"seq":1,"at":"","type":"unit","id":"u","ms":1e999}]}',
    ],
    [
      "with a record of no kind",
      '{"type":"records","orderId":"o","session":"s","records":[{"seq":1,"at":"","type":"__proto__"}]}',
    ],
    [
      "with a log record beyond its size",
      JSON.stringify({
        type: "records",
        orderId: "o",
        session: "s",
        records: [{ seq: 1, at: "", type: "log", offset: 0, data: "A".repeat(90_000) }],
      }),
    ],
  ])("%s ends its connection and nothing else", async (_, text) => {
    const peer = await Peer.connect();
    peer.socket.send(text);
    expect(await peer.closed).toBe(1008);
    expect((await (await Peer.connect()).open(placed)).session).toBeTruthy();
  });

  test("beyond the largest size is not read", async () => {
    const peer = await Peer.connect();
    peer.socket.send(randomBytes(MAX_FRAME_BYTES).toString("base64"));
    expect(await peer.closed).toBe(1009);
  });

  test("for an order whose name cannot be stored is answered as any unknown one", async () => {
    const peer = await Peer.connect();
    const answer = await peer.say({ type: "open", orderId: "\0\ud800", token: "x", protocol: 1 });
    expect(answer).toMatchObject({ type: "refused", code: "unknown" });
    const response = await fetch(`http://${origin}/runner/v1/orders/%00/objects`, {
      method: "PUT",
      headers: { authorization: "Bearer x" },
      body: "x",
    });
    expect(response.status).toBe(401);
  });
});

test("text of a guest that the database would not take is stored with a replacement, and the run goes on", async () => {
  const peer = await Peer.connect();
  const { session, host } = await peer.open(placed);
  const records = [
    host.running(),
    host.record({ type: "unit", id: "a\0b\ud800c", ms: 1 }),
    host.record({ type: "egress_denied", hostname: "\0.example", count: 1 }),
  ];
  expect(await peer.say({ type: "records", orderId: placed.orderId, session, records })).toMatchObject({
    type: "ack",
    seq: 3,
  });
  const units = await database.db.rows(UnitObservation, "where t.workload_id = $1", [placed.workloadId]);
  expect(units.map((u) => u.unitId)).toEqual(["a\ufffdb\ufffdc"]);
});

test("nothing is taken for an order that this connection has not opened, nor with another order's session", async () => {
  const other = await insertPlaced(database.db, clock.now());
  const peer = await Peer.connect();
  const mine = await peer.open(placed);
  const theirs = await (await Peer.connect()).open(other);
  const beat = { type: "beat", spooledSeq: 0 };
  expect(await peer.say({ ...beat, orderId: other.orderId, session: theirs.session })).toMatchObject({
    code: "bad_frame",
  });
  expect(await peer.say({ ...beat, orderId: placed.orderId, session: theirs.session })).toMatchObject({
    code: "bad_frame",
  });
  expect(
    await peer.say({ type: "resume", orderId: other.orderId, session: mine.session, spooledSeq: 0 }),
  ).toMatchObject({ code: "fenced" });
});

test("the answer to a beat names it, and a change that nobody asked for names none", async () => {
  const peer = await Peer.connect();
  const { session, host } = await peer.open(placed);
  const { orderId } = placed;
  await peer.say({ type: "records", orderId, session, records: [host.running()] });
  const answer = await peer.say({ type: "beat", orderId, session, beat: 7, spooledSeq: 1 });
  expect(answer).toMatchObject({ type: "want", beat: 7, allowance: { want: "run" } });
  await database.db.command((tx) => requestStop(tx, placed.workloadId, "cancel", clock.now()));
  await expect.poll(() => peer.heard.at(-1)).toMatchObject({ type: "want", beat: null, allowance: { want: "cancel" } });
});

test("a connection holds nothing of orders that have told their end, however long it lives", async () => {
  const peer = await Peer.connect();
  const listeners = sleepers.count;
  for (let n = 0; n < 5; n++) {
    const order = n === 0 ? placed : await insertPlaced(database.db, clock.now());
    const { session, host } = await peer.open(order);
    const records = [host.running(), host.exit(), host.end()];
    const answer = await peer.say({ type: "records", orderId: order.orderId, session, records });
    expect(answer).toMatchObject({ type: "ack", seq: 3 });
  }
  expect([intake.openOrders, sleepers.count]).toEqual([0, listeners]);
});

test("a session that was opened anew elsewhere is fenced where it was", async () => {
  const first = await Peer.connect();
  const { session, host } = await first.open(placed);
  await (await Peer.connect()).open(placed);
  const late = { type: "records", orderId: placed.orderId, session, records: [host.running()] };
  expect(await first.say(late)).toMatchObject({ type: "refused", code: "fenced" });
});

test("thousands of opens are answered one by one, and nothing of them stays", async () => {
  const peer = await Peer.connect();
  const open = JSON.stringify({ type: "open", orderId: `ord_${"0".repeat(60)}`, token: "x", protocol: 1 });
  for (let i = 0; i < 2_000; i++) peer.socket.send(open);
  await expect.poll(() => peer.heard.length, { timeout: 20_000 }).toBe(2_000);
  expect(new Set(peer.heard.map((f) => (f.type === "refused" ? f.code : f.type)))).toEqual(new Set(["unknown"]));
  expect(intake.openOrders).toBe(0);
}, 30_000);

test("connections that open no order give way to newer ones, and a host that has opened one stays", async () => {
  const host = await Peer.connect();
  const { session } = await host.open(placed);
  const strangers: Peer[] = [];
  for (let n = 0; n < 11; n++) strangers.push(await Peer.connect());
  expect(await strangers[0]!.closed).toBe(1013);
  const other = await insertPlaced(database.db, clock.now());
  expect((await (await Peer.connect()).open(other)).session).toBeTruthy();
  expect(await strangers[1]!.closed).toBe(1013);
  expect(strangers.slice(2).every(({ socket }) => socket.readyState === WebSocket.OPEN)).toBe(true);
  const beat = { type: "beat", orderId: placed.orderId, session, beat: 1, spooledSeq: 0 };
  expect(await host.say(beat)).toMatchObject({ type: "want", beat: 1 });
});

test("a host that reads no answers is cut off before they fill the memory", async () => {
  const peer = await Peer.connect();
  await peer.open(placed);
  expect(intake.openOrders).toBe(1);
  peer.socket.pause();
  const unknown = JSON.stringify({ type: "beat", orderId: "o".repeat(512), session: "x", spooledSeq: 0 });
  for (let i = 0; i < 120_000 && intake.openOrders === 1; i++) {
    peer.socket.send(unknown);
    if (i % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await expect.poll(() => intake.openOrders, { timeout: 20_000 }).toBe(0);
}, 60_000);
