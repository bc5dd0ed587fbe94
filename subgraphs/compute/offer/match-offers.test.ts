import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { TENANT } from "../../../tests/support/compute-fixtures.ts";
import { context, cpu, minutes, NOW, offer, spec } from "../../../tests/support/match-fixture.ts";
import type { StageSpec } from "../stage/stage.entity.ts";
import { type MatchContext, matchOffers, REJECTIONS, type Rejection } from "./match-offers.ts";
import type { Offer } from "./offer.entity.ts";

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
    ["price", {}, {}, { budget: { micros: 36_666n, windowMs: 60_000, feeBasisPoints: 1_000 } }],
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
    const budget = { micros: 36_667n, windowMs: 60_000, feeBasisPoints: 1_000 };
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
