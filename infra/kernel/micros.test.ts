import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { basisPoints, chargeMicros, fromUsdNumber, fromUsdText, fundedMs, MICROS_PER_USD, toUsd } from "./micros.ts";

const rates = fc.bigInt({ min: 1n, max: 1_000_000_000_000n });
const amounts = fc.bigInt({ min: 0n, max: 10n ** 15n });
const durations = fc.nat(100 * 365 * 86_400_000);

describe("a charge", () => {
  test("is the exact quotient rounded down", () => {
    fc.assert(
      fc.property(rates, durations, (rate, ms) => {
        const charge = chargeMicros(rate, ms);
        expect(charge * 3_600_000n <= rate * BigInt(ms)).toBe(true);
        expect((charge + 1n) * 3_600_000n > rate * BigInt(ms)).toBe(true);
      }),
    );
  });

  test("of a time cut in two is never more than of the whole, and at most a micro less", () => {
    fc.assert(
      fc.property(rates, durations, durations, (rate, a, b) => {
        const parts = chargeMicros(rate, a) + chargeMicros(rate, b);
        const whole = chargeMicros(rate, a + b);
        expect(whole - parts === 0n || whole - parts === 1n).toBe(true);
      }),
    );
  });

  test("never exceeds the money that funded the time", () => {
    fc.assert(
      fc.property(rates, amounts, (rate, micros) => {
        const ms = fundedMs(rate, micros)!;
        fc.pre(ms < Number.MAX_SAFE_INTEGER);
        expect(chargeMicros(rate, ms) <= micros).toBe(true);
      }),
    );
  });

  test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])("for %s milliseconds is refused", (ms) =>
    expect(() => chargeMicros(1n, ms)).toThrow(RangeError),
  );

  test("at a negative rate is refused", () => {
    expect(() => chargeMicros(-1n, 1)).toThrow(RangeError);
    expect(() => fundedMs(-1n, 1n)).toThrow(RangeError);
  });

  test("at no rate funds for ever, and no money funds nothing", () => {
    expect(fundedMs(0n, 5n)).toBeNull();
    expect(fundedMs(1n, 0n)).toBe(0);
    expect(fundedMs(1n, -5n)).toBe(0);
  });
});

test("a share in basis points is rounded down, and a share of a debt is refused", () => {
  fc.assert(
    fc.property(amounts, fc.nat(10_000), (amount, points) => {
      const share = basisPoints(amount, points);
      expect(share * 10_000n <= amount * BigInt(points)).toBe(true);
      expect((share + 1n) * 10_000n > amount * BigInt(points)).toBe(true);
    }),
  );
  expect(() => basisPoints(-1n, 100)).toThrow(RangeError);
});

describe("dollars", () => {
  test("are exact on the wire below 2^33 dollars", () => {
    const most = 2n ** 33n * MICROS_PER_USD;
    fc.assert(
      fc.property(fc.bigInt({ min: -most + 1n, max: most - 1n }), (micros) => {
        const wire = JSON.parse(JSON.stringify(toUsd(micros))) as number;
        expect(fromUsdNumber(wire)).toBe(micros);
      }),
    );
  });

  test("as text are read with six decimals and no product of floats", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.nat(5), (micros, zeros) => {
        const digits = micros.toString().padStart(7, "0");
        const text = `${digits.slice(0, -6)}.${digits.slice(-6)}${"0".repeat(zeros)}`;
        expect(fromUsdText(text)).toBe(micros);
        expect(fromUsdText(`-${text}`)).toBe(-micros);
      }),
    );
  });

  test.each(["", "1.", ".5", "1e3", "+1", " 1", "1,5", "0x1", "1.0000001", "NaN", "--1", "1\n"])(
    "%j is no amount of dollars",
    (text) => expect(fromUsdText(text)).toBeNull(),
  );

  test.each([
    [0.1, 100_000n],
    [4.35, 4_350_000n],
    [1e-7, 0n],
    [1.9999999, 1_999_999n],
    [1e21, 10n ** 27n],
    [1.5e-6, 1n],
    [123456789.123456, 123_456_789_123_456n],
    [-2.5, -2_500_000n],
    [-0, 0n],
  ])("the number %d is %d micros", (usd, micros) => expect(fromUsdNumber(usd)).toBe(micros));

  test("anything but a finite number is none", () => {
    for (const value of ["1", null, undefined, Number.NaN, Number.POSITIVE_INFINITY, 1n, {}])
      expect(fromUsdNumber(value)).toBeNull();
    fc.assert(
      fc.property(
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        (n) => void expect(fromUsdNumber(n)).not.toBeNull(),
      ),
    );
  });
});
