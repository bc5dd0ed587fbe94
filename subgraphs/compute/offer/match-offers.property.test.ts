import fc from "fast-check";
import { expect, test } from "vitest";
import { TENANT } from "../../../tests/support/compute-fixtures.ts";
import { context, minutes, NOW, offer, spec } from "../../../tests/support/match-fixture.ts";
import { matchOffers } from "./match-offers.ts";

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
