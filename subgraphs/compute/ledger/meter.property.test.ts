import fc from "fast-check";
import { expect, test } from "vitest";
import { accruedCharge, type MeteredPlacement, meterOf } from "./meter.ts";

const now = new Date("2026-03-01T12:00:00Z");
const micros = (max: bigint) => fc.bigInt({ min: 0n, max });

const placement: fc.Arbitrary<MeteredPlacement> = fc.record({
  state: fc.constantFrom("provisioning", "running", "ended", "closed"),
  runningAt: fc.option(fc.date({ min: new Date("2026-02-01"), max: new Date("2026-04-01"), noInvalidDate: true })),
  ranMs: fc.option(fc.nat({ max: 10_000_000_000 })),
  heldMicros: micros(10n ** 12n),
  rateMicrosPerHour: micros(10n ** 9n),
  feeBasisPoints: fc.nat({ max: 10_000 }),
});

test("a meter's parts add up, and nothing accrues beyond what is held or after the last charge", () => {
  fc.assert(
    fc.property(
      fc.array(placement, { maxLength: 6 }),
      micros(10n ** 12n),
      fc.nat(100),
      (placements, spend, percent) => {
        const fee = (spend * BigInt(percent)) / 100n;
        const meter = meterOf(spend, fee, placements, now);
        expect(meter.computeSettledUsd + meter.platformFeeSettledUsd).toBe(meter.settledUsd);
        expect(meter.computeAccruingUsd + meter.platformFeeAccruingUsd).toBe(meter.accruingUsd);
        expect(meter.settledUsd + meter.accruingUsd).toBe(meter.totalNowUsd);
        const held = placements.filter((p) => p.state !== "closed").reduce((sum, p) => sum + p.heldMicros, 0n);
        expect(meter.accruingUsd >= 0n && meter.accruingUsd <= held).toBe(true);
        if (placements.every((p) => p.state === "closed")) expect(meter.accruingUsd).toBe(0n);
        if (placements.every((p) => p.state !== "running")) expect(meter.accruingRateUsdHour).toBe(0n);
      },
    ),
  );
});

test("what accrues never shrinks while a placement runs", () => {
  fc.assert(
    fc.property(placement, fc.nat({ max: 10_000_000 }), (given, laterMs) => {
      const running: MeteredPlacement = {
        ...given,
        state: "running",
        runningAt: new Date(now.getTime() - 1000),
        ranMs: null,
      };
      const before = accruedCharge(running, now).totalMicros;
      expect(accruedCharge(running, new Date(now.getTime() + laterMs)).totalMicros >= before).toBe(true);
    }),
  );
});
