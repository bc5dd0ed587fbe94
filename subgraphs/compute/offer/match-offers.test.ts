import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { stageSpec, TENANT } from "../../../tests/support/compute-fixtures.ts";
import type { StageSpec } from "../stage/stage.entity.ts";
import { type MatchContext, matchOffers, REJECTIONS, type Rejection } from "./match-offers.ts";
import type { Offer } from "./offer.entity.ts";

const NOW = new Date("2026-03-01T00:00:00Z");
const minutes = (n: number) => new Date(NOW.getTime() + n * 60_000);

let count = 0;
function offer(over: Partial<Offer> = {}): Offer {
  const id = over.id ?? `off_${String(++count).padStart(6, "0")}`;
  return {
    supplier: "sim",
    sku: id,
    region: "east",
    capacityId: `sim/${id}`,
    computeClass: "accelerator",
    vcpus: 8,
    hostMemoryGb: 64,
    diskGb: 500,
    networkGbps: null,
    accelerator: "H100",
    gpuCount: 1,
    deviceMemoryGb: 80,
    rateMicrosPerHour: 2_000_000n,
    interruptible: false,
    simulated: false,
    isolated: true,
    note: null,
    expectedBootSeconds: 10,
    poolId: null,
    tenantId: null,
    seenAt: NOW,
    withdrawnAt: null,
    quarantinedUntil: null,
    failuresInRow: 0,
    version: 1,
    ...over,
    id,
  };
}

const cpu = (over: Partial<Offer> = {}) =>
  offer({
    computeClass: "vm",
    accelerator: null,
    gpuCount: 0,
    deviceMemoryGb: 0,
    rateMicrosPerHour: 100_000n,
    ...over,
  });

function spec(over: Partial<StageSpec> = {}): StageSpec {
  return { ...stageSpec, computeClassDefaulted: false, ...over };
}

function context(over: Partial<MatchContext> = {}): MatchContext {
  return {
    now: NOW,
    tenantId: TENANT,
    cpuFallback: false,
    defaults: { cpuMillis: 100, memoryMb: 512 },
    budget: null,
    ...over,
  };
}

const skus = (ranked: { offer: Offer }[]) => ranked.map((r) => r.offer.sku);

describe("an offer is passed over for the first reason that applies", () => {
  const cases: [Rejection, Partial<StageSpec>, Partial<Offer>, Partial<MatchContext>?][] = [
    ["withdrawn", {}, { withdrawnAt: NOW }],
    ["pool", { placement: { kind: "pool", poolId: "pool_a" } }, {}],
    ["pool", { placement: { kind: "pool", poolId: "pool_a" } }, { poolId: "pool_b" }],
    ["pool", { placement: { kind: "market" } }, { poolId: "pool_a" }],
    ["compute_class", { computeClass: "vm" }, {}],
    ["compute_class", {}, { computeClass: "vm", accelerator: null, gpuCount: 0 }],
    ["gpu_family", { gpu: "A100" }, {}],
    ["gpu_count", { gpuCount: 2 }, {}],
    ["gpu_count", { gpuCount: 1 }, { gpuCount: 8 }],
    ["device_memory", { deviceMemoryGb: 81 }, {}],
    ["vcpus", { vcpus: 8.5 }, {}],
    ["memory", { computeClass: "vm", deviceMemoryGb: 65 }, { computeClass: "vm", accelerator: null, gpuCount: 0 }],
    ["disk", { diskGb: 501 }, {}],
    ["region", { regions: ["west", "north"] }, {}],
    ["not_isolated", { needsIsolation: true }, { isolated: false }],
    ["price", {}, {}, { budget: { micros: 36_665n, windowMs: 60_000, feeBasisPoints: 1_000 } }],
    ["silent", {}, {}, { silentSuppliers: new Set(["sim"]) }],
    ["quarantined", {}, { quarantinedUntil: minutes(1) }],
  ];
  test.each(cases)("%s: %o", (reason, wants, over, also = {}) => {
    const bad = offer(over);
    const { ranked, rejected, nearest } = matchOffers(spec(wants), [bad], context(also));
    expect(ranked).toEqual([]);
    expect(nearest).toBe(reason);
    expect(rejected).toEqual({
      counts: { [reason]: 1 },
      examples: [{ sku: bad.sku, region: bad.region, reason }],
    });
  });

  test("and is taken when its limits are met exactly", () => {
    const wants = spec({
      gpu: "H100",
      deviceMemoryGb: 80,
      vcpus: 8,
      diskGb: 500,
      regions: ["east"],
      needsIsolation: true,
    });
    const budget = { micros: 36_666n, windowMs: 60_000, feeBasisPoints: 1_000 };
    const past = { quarantinedUntil: NOW, failuresInRow: 1 };
    expect(matchOffers(wants, [offer(past)], context({ budget })).ranked).toHaveLength(1);
  });

  test("every reason has a case", () => {
    expect(new Set(cases.map(([reason]) => reason))).toEqual(new Set(REJECTIONS));
  });
});

describe("the CPU stands in for an accelerator", () => {
  const fallback = context({ cpuFallback: true });
  const defaulted = spec({ computeClassDefaulted: true });

  test("only where the deployment allows it and nobody named a GPU, a class or several devices", () => {
    const cpus = [cpu()];
    expect(matchOffers(defaulted, cpus, fallback).ranked[0]).toMatchObject({ cpuFallback: true, need: { gpus: 0 } });
    for (const [wants, where] of [
      [defaulted, context()],
      [spec({ computeClassDefaulted: false }), fallback],
      [spec({ computeClassDefaulted: true, gpu: "H100" }), fallback],
      [spec({ computeClassDefaulted: true, gpuCount: 2 }), fallback],
    ] as const)
      expect(matchOffers(wants, cpus, where).nearest).toBe("compute_class");
  });

  test("whatever memory its devices should have had, and after every real one", () => {
    const wants = { ...defaulted, deviceMemoryGb: 40 };
    const { ranked } = matchOffers(wants, [cpu({ sku: "cpu" }), offer({ sku: "h100" })], fallback);
    expect(ranked.map((r) => [r.offer.sku, r.cpuFallback])).toEqual([
      ["h100", false],
      ["cpu", true],
    ]);
  });
});

describe("the best offer comes first", () => {
  test("private capacity before the market when placement was left open, and only then", () => {
    const offers = [offer({ sku: "market", rateMicrosPerHour: 1n }), offer({ sku: "private", poolId: "pool_a" })];
    expect(skus(matchOffers(spec(), offers, context()).ranked)).toEqual(["private", "market"]);
    expect(skus(matchOffers(spec({ placement: { kind: "market" } }), offers, context()).ranked)).toEqual(["market"]);
    const pool = spec({ placement: { kind: "pool", poolId: "pool_a" } });
    expect(skus(matchOffers(pool, offers, context()).ranked)).toEqual(["private"]);
  });

  test("then the cheapest, behind it what failed a boot lately, and last what failed this stage", () => {
    const lately = { failuresInRow: 1, quarantinedUntil: minutes(-1) };
    const longAgo = { failuresInRow: 1, quarantinedUntil: new Date(NOW.getTime() - LIMITS.failedBootMemoryMs) };
    const offers = [
      offer({ sku: "dear", rateMicrosPerHour: 9n }),
      offer({ sku: "failed-lately", rateMicrosPerHour: 1n, ...lately }),
      offer({ sku: "failed-long-ago", rateMicrosPerHour: 2n, ...longAgo }),
      offer({ sku: "failed-this-stage", rateMicrosPerHour: 1n, id: "off_f" }),
    ];
    const { ranked } = matchOffers(spec(), offers, context({ failedOfferIds: ["off_f"] }));
    expect(skus(ranked)).toEqual(["failed-long-ago", "dear", "failed-lately", "failed-this-stage"]);
  });

  test("by measured cost where every offer that fits has one", () => {
    const [slow, fast] = [offer({ sku: "slow", rateMicrosPerHour: 1n }), offer({ sku: "fast", rateMicrosPerHour: 5n })];
    const costs = new Map([
      [slow.id, 100n],
      [fast.id, 40n],
    ]);
    const measuredCost = (o: Offer) => costs.get(o.id) ?? null;
    expect(skus(matchOffers(spec(), [slow, fast], context({ measuredCost })).ranked)).toEqual(["fast", "slow"]);
    const third = offer({ sku: "unmeasured", rateMicrosPerHour: 3n });
    expect(skus(matchOffers(spec(), [slow, fast, third], context({ measuredCost })).ranked)).toEqual([
      "slow",
      "unmeasured",
      "fast",
    ]);
  });

  test("ties go to the sku", () => {
    expect(skus(matchOffers(spec(), [offer({ sku: "b" }), offer({ sku: "a" })], context()).ranked)).toEqual(["a", "b"]);
  });
});

test("another team's private offer is not even counted", () => {
  const { ranked, rejected, nearest } = matchOffers(spec(), [offer({ tenantId: "team_other" })], context());
  expect({ ranked, nearest, counts: rejected.counts }).toEqual({ ranked: [], nearest: null, counts: {} });
  expect(matchOffers(spec(), [offer({ tenantId: TENANT })], context()).ranked).toHaveLength(1);
});

test("examples are few and those that came closest", () => {
  const offers = [
    ...Array.from({ length: 200 }, () => offer({ accelerator: "A100" })),
    ...Array.from({ length: 7 }, () => offer({ quarantinedUntil: minutes(5) })),
  ];
  const { rejected } = matchOffers(spec({ gpu: "H100" }), offers, context());
  expect(rejected.counts).toEqual({ gpu_family: 200, quarantined: 7 });
  expect(rejected.examples).toHaveLength(LIMITS.rejectedOfferExamples);
  expect(rejected.examples.slice(0, 7).every((e) => e.reason === "quarantined")).toBe(true);
});

const anyOffer = fc
  .record({
    computeClass: fc.constantFrom("vm" as const, "accelerator" as const),
    accelerator: fc.constantFrom("H100", "A100", "L4"),
    gpuCount: fc.constantFrom(1, 2, 4, 8),
    deviceMemoryGb: fc.constantFrom(24, 40, 80),
    vcpus: fc.integer({ min: 1, max: 64 }),
    rateMicrosPerHour: fc.bigInt({ min: 0n, max: 5n }),
    region: fc.constantFrom("east", "west"),
    isolated: fc.boolean(),
    poolId: fc.constantFrom(null, "pool_a"),
    tenantId: fc.constantFrom(null, TENANT, "team_other"),
    quarantinedUntil: fc.constantFrom(null, minutes(-1), minutes(1)),
    failuresInRow: fc.constantFrom(0, 1),
    sku: fc.constantFrom("s1", "s2", "s3"),
  })
  .map((o) => offer(o.computeClass === "vm" ? { ...o, accelerator: null, gpuCount: 0, deviceMemoryGb: 0 } : o));

const anySpec = fc
  .record({
    gpu: fc.constantFrom(null, "H100", "A100"),
    gpuCount: fc.constantFrom(1 as const, 2 as const, 4 as const),
    deviceMemoryGb: fc.constantFrom(0, 40, 80),
    vcpus: fc.constantFrom(0, 4, 32),
    regions: fc.constantFrom<string[]>([], ["east"]),
    computeClassDefaulted: fc.boolean(),
    needsIsolation: fc.boolean(),
  })
  .map((s) => spec(s));

test("property: the result does not depend on the order of the offers", () => {
  fc.assert(
    fc.property(
      anySpec,
      fc.array(anyOffer, { maxLength: 40 }),
      fc.boolean(),
      fc.nat(),
      (wants, offers, cpuFallback, turn) => {
        const where = context({ cpuFallback });
        const other = offers.toReversed();
        const at = offers.length === 0 ? 0 : turn % offers.length;
        const turned = [...other.slice(at), ...other.slice(0, at)];
        expect(matchOffers(wants, turned, where)).toEqual(matchOffers(wants, offers, where));
      },
    ),
  );
});

test("property: every offer that the team may see is ranked or counted once, and what is ranked keeps every demand", () => {
  fc.assert(
    fc.property(anySpec, fc.array(anyOffer, { maxLength: 40 }), fc.boolean(), (wants, offers, cpuFallback) => {
      const { ranked, rejected } = matchOffers(wants, offers, context({ cpuFallback }));
      const counted = Object.values(rejected.counts).reduce((a, b) => a + b, 0);
      const visible = offers.filter((o) => o.tenantId === null || o.tenantId === TENANT);
      expect(ranked.length + counted).toBe(visible.length);
      for (const { offer: o, cpuFallback: standsIn } of ranked) {
        expect(visible).toContain(o);
        if (wants.gpu !== null) expect(o.accelerator).toBe(wants.gpu);
        if (standsIn) expect([wants.gpu, o.accelerator, cpuFallback]).toEqual([null, null, true]);
        else expect(o.gpuCount).toBe(wants.gpuCount);
        if (!standsIn) expect(o.deviceMemoryGb).toBeGreaterThanOrEqual(wants.deviceMemoryGb);
        expect(o.vcpus).toBeGreaterThanOrEqual(wants.vcpus);
        if (wants.regions.length > 0) expect(wants.regions).toContain(o.region);
        if (wants.needsIsolation) expect(o.isolated).toBe(true);
        expect(o.quarantinedUntil === null || o.quarantinedUntil <= NOW).toBe(true);
      }
    }),
  );
});

test("among ten thousand offers the cheapest that fits is found", () => {
  const offers = Array.from({ length: 10_000 }, (_, i) =>
    offer({
      accelerator: i % 3 === 0 ? "H100" : "A100",
      gpuCount: i % 2 === 0 ? 1 : 8,
      region: i % 5 === 0 ? "east" : "west",
      rateMicrosPerHour: BigInt(1_000_000 + ((i * 7919) % 10_007)),
    }),
  );
  const wants = spec({ gpu: "H100", gpuCount: 8, regions: ["east"] });
  const fits = offers.filter((o) => o.accelerator === "H100" && o.gpuCount === 8 && o.region === "east");
  const cheapest = fits.reduce((a, b) => (b.rateMicrosPerHour < a.rateMicrosPerHour ? b : a));
  const { ranked, rejected } = matchOffers(wants, offers, context());
  expect(ranked).toHaveLength(fits.length);
  expect(ranked[0]!.offer.id).toBe(cheapest.id);
  expect(Object.values(rejected.counts).reduce((a, b) => a + b, 0)).toBe(10_000 - fits.length);
});
