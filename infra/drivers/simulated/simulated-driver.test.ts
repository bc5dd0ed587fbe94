import { describe, expect, test } from "vitest";
import { driverConformance } from "../../../tests/conformance/driver.ts";
import { CPU_KIND, H100_KIND } from "../../../tests/support/market-kinds.ts";
import { passTime } from "../../../tests/support/pass-time.ts";
import { FakeClock } from "../../kernel/clock.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { Allowance, HostFrame, IntakeFrame, OrderSpec } from "../../runner/protocol.ts";
import { SimulatedMarket } from "./market.ts";
import type { RunnerConnect } from "./runner-transport.ts";
import type { Scripts } from "./script.ts";
import { seededRandom } from "./seeded-random.ts";
import { SimulatedDriver } from "./simulated-driver.ts";

const signal = new AbortController().signal;
const deaf: RunnerConnect = () => ({ receive: () => {}, closed: () => {} });

function marketOf(
  over: { connect?: RunnerConnect; scripts?: Scripts; seed?: number; kinds?: (typeof CPU_KIND)[] } = {},
) {
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  const market = new SimulatedMarket({
    clock,
    seed: over.seed ?? 1,
    kinds: over.kinds ?? [{ ...CPU_KIND, bootMs: 5_000 }, H100_KIND],
    connect: over.connect ?? deaf,
    scripts: over.scripts ?? (() => ({ steps: [] })),
  });
  return { clock, market };
}

driverConformance("simulated", async () => {
  const { clock, market } = marketOf();
  const make = () => new SimulatedDriver({ market, random: seededRandom(1) });
  return {
    driver: make(),
    another: async () => make(),
    intakeUrl: "http://127.0.0.1:1/runner/v1",
    tick: () => clock.advance(500),
    close: async () => {},
  };
});

const order = (orderId: string) => ({
  ...{ orderId, sku: CPU_KIND.sku, region: CPU_KIND.region, token: "t", intakeUrl: "" },
  ...{ cpuMillis: 100, memoryMb: 64, gpuCount: 0 },
});

test("the same seed makes the same market, another one another", async () => {
  const swinging = { ...CPU_KIND, priceSwing: 0.5 };
  const prices = (seed: number) => marketOf({ seed, kinds: [swinging] }).market.offers()[0]!.rateMicrosPerHour;
  expect(prices(1)).toBe(prices(1));
  expect(prices(1)).not.toBe(prices(2));
  expect(prices(1)).toBeGreaterThanOrEqual(50_000n);
  expect(prices(1)).toBeLessThanOrEqual(150_000n);
});

describe("a misbehaving supplier", () => {
  test("loses the answer of a launch that took effect, or the launch itself", async () => {
    const { market } = marketOf();
    const driver = new SimulatedDriver({ market, random: seededRandom(1), misbehaviour: { lostReply: 1 } });
    expect((await driver.launch(order("ord_1"))).outcome).toBe("unknown");
    expect(market.stateOf("ord_1")).toBe("starting");
    Object.assign(driver.misbehaviour, { lostReply: 0, lostRequest: 1 });
    expect((await driver.launch(order("ord_2"))).outcome).toBe("unknown");
    expect(market.stateOf("ord_2")).toBe("never_seen");
  });

  test("says gone of an order that runs on, until it is asked again", async () => {
    const { market, clock } = marketOf();
    const driver = new SimulatedDriver({ market, random: seededRandom(1), misbehaviour: { lie: 1 } });
    await driver.launch(order("ord_1"));
    await clock.advance(5_000);
    expect([await driver.terminate("ord_1"), (await driver.observe("ord_1")).state]).toEqual(["gone", "gone"]);
    expect(await driver.list()).toEqual(["ord_1"]);
    await driver.terminate("ord_1");
    expect(await driver.list()).toEqual([]);
  });

  test("has less than it says, and tells of a machine that it takes back", async () => {
    const { market, clock } = marketOf({ kinds: [{ ...H100_KIND, bootMs: 0, taken: 1 }] });
    const driver = new SimulatedDriver({ market, random: seededRandom(1) });
    const h100 = (id: string) => ({ ...order(id), sku: H100_KIND.sku });
    expect((await driver.offers(signal))[0]!.capacity.slots).toBe(2);
    expect((await driver.launch(h100("ord_1"))).outcome).toBe("accepted");
    expect(await driver.launch(h100("ord_2"))).toMatchObject({ outcome: "refused", reason: "no_capacity" });
    void market.reclaim("ord_1", 30_000);
    expect(await driver.observe("ord_1")).toEqual({
      state: "reclaiming",
      noticeAt: new Date("2026-03-01T00:00:30.000Z"),
    });
    await clock.advance(30_000);
    expect(await driver.observe("ord_1")).toEqual({ state: "gone" });
  });

  test("does not answer at all", async () => {
    const { market } = marketOf();
    const driver = new SimulatedDriver({ market, random: seededRandom(1) });
    driver.silent = true;
    await expect(driver.offers(AbortSignal.timeout(5))).rejects.toThrow("not answered");
    expect((await driver.launch(order("ord_1"))).outcome).toBe("unknown");
    expect(await driver.terminate("ord_1")).toBe("unknown");
    expect(await driver.list()).toBeNull();
  });
});

const SPEC = { limits: { cancelGraceMs: 5_000 }, command: ["true"] } as OrderSpec;
const ALLOWANCE: Allowance = { want: "run", leaseMs: 90_000, fundedRunMs: null, deadlineMs: null };

/** An intake in miniature that answers what it is told to and remembers what it hears. */
function intake() {
  const heard: HostFrame[] = [];
  const streams: { send: (frame: IntakeFrame) => void; close: () => void }[] = [];
  const connect: RunnerConnect = (send, close) => {
    streams.push({ send, close });
    return { receive: (frame) => void heard.push(frame), closed: () => {} };
  };
  const opened = (allowance: Partial<Allowance> = {}): IntakeFrame => ({
    ...{ type: "opened", orderId: "ord_1", session: "s", spec: SPEC, secrets: {}, redact: [] },
    allowance: { ...ALLOWANCE, ...allowance },
  });
  const records = () => heard.flatMap((f) => (f.type === "records" ? f.records : []));
  return { heard, streams, connect, opened, records };
}

/** An order whose runner has connected. */
async function connected(scripts: Scripts) {
  const side = intake();
  const { clock, market } = marketOf({ connect: side.connect, scripts, kinds: [{ ...CPU_KIND, bootMs: 0 }] });
  market.launch(order("ord_1"), false);
  await passTime(clock, 0);
  return { ...side, clock, market };
}

describe("the scripted runner", () => {
  test("exchanges its token, numbers its records, and is over when the last one is acknowledged", async () => {
    const { heard, streams, opened, records, clock, market } = await connected(() => ({
      steps: [{ log: "hällo\n" }, { unit: "u1", ms: 5 }, { waitMs: 1_000 }],
      exit: { code: 3 },
    }));
    expect(heard).toEqual([{ type: "open", orderId: "ord_1", token: "t", protocol: 1 }]);
    streams[0]!.send(opened());
    await passTime(clock, 1_000);
    expect(records().map((r) => [r.seq, r.type])).toEqual([
      [1, "phase"],
      [2, "phase"],
      [3, "log"],
      [4, "unit"],
      [5, "exit"],
      [6, "end"],
    ]);
    expect(records()[4]).toMatchObject({ code: 3, signal: null, killedBy: null, ranMs: 1_000 });
    expect(records()[5]).toMatchObject({ logBytes: 7 });
    expect(market.stateOf("ord_1")).toBe("running");
    streams[0]!.send({ type: "ack", orderId: "ord_1", seq: 6 });
    expect(market.stateOf("ord_1")).toBe("gone");
  });

  test("resumes after a lost stream and repeats what was not acknowledged", async () => {
    const { heard, streams, opened, clock } = await connected(() => ({
      steps: [{ log: "a" }, { log: "b" }, { waitMs: 9e6 }],
    }));
    streams[0]!.send(opened());
    await passTime(clock, 10);
    streams[0]!.close();
    await passTime(clock, 500);
    expect(heard.at(-1)).toEqual({ type: "resume", orderId: "ord_1", session: "s", spooledSeq: 4 });
    streams[1]!.send({ type: "resumed", orderId: "ord_1", ackSeq: 3, allowance: ALLOWANCE });
    expect(heard.at(-1)).toMatchObject({ type: "records", records: [{ seq: 4 }] });
  });

  test.each([
    ["its lease", {}, LIMITS.leaseMs - LIMITS.leaseMarginMs, "lease"],
    ["its funding", { fundedRunMs: 2_000 }, 2_000, "funding"],
    ["its deadline", { deadlineMs: 3_000 }, 3_000, "deadline"],
  ])("ends its guest by its own clock when %s is over", async (_, allowance, atMs, killedBy) => {
    const { streams, opened, records, clock } = await connected(() => ({ steps: [{ waitMs: 9e6 }] }));
    streams[0]!.send(opened(allowance));
    await passTime(clock, atMs - 1, 500);
    expect(records().map((r) => r.type)).not.toContain("exit");
    await passTime(clock, 2);
    expect(records().find((r) => r.type === "exit")).toMatchObject({ killedBy, signal: "SIGKILL", ranMs: atMs });
  });

  test("lives on for a lease from the beat that was answered, not from a change that nobody asked for", async () => {
    const { heard, streams, opened, records, clock } = await connected(() => ({ steps: [{ waitMs: 9e6 }] }));
    streams[0]!.send(opened());
    await passTime(clock, 10_500, 500);
    expect(heard.filter((f) => f.type === "beat").map((f) => f.beat)).toEqual([1, 2]);
    streams[0]!.send({ type: "want", orderId: "ord_1", beat: 1, allowance: ALLOWANCE });
    await passTime(clock, 70_000, 500);
    streams[0]!.send({ type: "want", orderId: "ord_1", beat: null, allowance: ALLOWANCE });
    await passTime(clock, 9_000, 500);
    expect(records().map((r) => r.type)).not.toContain("exit");
    await passTime(clock, 1_000, 500);
    expect(records().find((r) => r.type === "exit")).toMatchObject({
      killedBy: "lease",
      ranMs: 5_000 + LIMITS.leaseMs - LIMITS.leaseMarginMs,
    });
  });

  test.each([
    [false, 0],
    [true, 5_000],
  ])(
    "ends when it is cancelled; taking no notice (%s) it is killed after the grace",
    async (ignoresCancel, graceMs) => {
      const { streams, opened, records, clock } = await connected(() => ({ steps: [{ waitMs: 9e6 }], ignoresCancel }));
      streams[0]!.send(opened());
      await passTime(clock, 1_000);
      streams[0]!.send({ type: "want", orderId: "ord_1", allowance: { ...ALLOWANCE, want: "cancel" } });
      await passTime(clock, graceMs + 10);
      expect(records().find((r) => r.type === "exit")).toMatchObject({ killedBy: "cancel", ranMs: 1_000 + graceMs });
    },
  );

  test("says nothing more once it was turned away or its machine died", async () => {
    const { heard, streams, opened, clock, market } = await connected(() => ({
      steps: [{ waitMs: 60_000 }, { die: true }],
    }));
    streams[0]!.send(opened());
    await passTime(clock, 61_000, 500);
    const count = heard.length;
    await passTime(clock, 600_000, 5_000);
    expect(heard).toHaveLength(count);
    expect(market.stateOf("ord_1")).toBe("running");
    const other = await connected(() => ({ steps: [{ waitMs: 60_000 }] }));
    other.streams[0]!.send({ type: "refused", orderId: "ord_1", code: "fenced", message: "" });
    expect(other.market.stateOf("ord_1")).toBe("gone");
  });
});
