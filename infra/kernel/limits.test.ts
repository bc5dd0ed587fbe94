import { expect, test } from "vitest";
import { isOneOf } from "./closed-set.ts";
import { LIMITS } from "./limits.ts";

test("every limit is a whole number above zero", () => {
  for (const [name, value] of Object.entries(LIMITS)) expect(Number.isSafeInteger(value) && value > 0, name).toBe(true);
});

test("limits that belong together fit together", () => {
  expect(LIMITS.listPageDefault).toBeLessThanOrEqual(LIMITS.listPageMax);
  expect(LIMITS.logCaptureBytes).toBeLessThanOrEqual(LIMITS.logCommittedBytes);
  // A lease that loses three heartbeats in a row still lives, and the host kills before it ends.
  expect(LIMITS.heartbeatIntervalMs * 4 + LIMITS.leaseMarginMs).toBeLessThan(LIMITS.leaseMs);
  expect(LIMITS.cancelGraceMs).toBeLessThan(LIMITS.leaseMs - LIMITS.leaseMarginMs);
});

test("a closed set holds its own words and no others", () => {
  const words = ["on", "off"] as const;
  expect(words.every((word) => isOneOf(words, word))).toBe(true);
  for (const other of ["", "ON", "toString", null, 1, ["on"]]) expect(isOneOf(words, other)).toBe(false);
});
