import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeCursor, encodeCursor } from "./cursor.ts";
import { Refused } from "./refusal.ts";

const keysets = fc.array(
  fc.oneof(fc.string({ unit: "grapheme", maxLength: 40 }), fc.integer({ min: 0, max: 8.64e15 })),
  {
    minLength: 1,
    maxLength: 3,
  },
);

function codeOf(work: () => unknown): string | null {
  try {
    work();
    return null;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return error.kind.code;
  }
}

test("a cursor is read back as the keyset that it was made of", () => {
  fc.assert(
    fc.property(
      keysets,
      (keyset) => void expect(decodeCursor("l", encodeCursor("l", keyset), keyset.length)).toEqual(keyset),
    ),
  );
});

test("a cursor is safe in a URL", () => {
  fc.assert(fc.property(keysets, (keyset) => void expect(encodeCursor("l", keyset)).toMatch(/^[A-Za-z0-9_-]+$/)));
});

test("a cursor of another list, or with another number of values, is refused", () => {
  const cursor = encodeCursor("workloads", ["2026-01-01", "wl_1"]);
  expect(codeOf(() => decodeCursor("pools", cursor, 2))).toBe("invalid_cursor");
  expect(codeOf(() => decodeCursor("workloads", cursor, 1))).toBe("invalid_cursor");
});

test("any other text is refused by name, never thrown as a fault", () => {
  fc.assert(
    fc.property(fc.string(), (text) => void expect(codeOf(() => decodeCursor("l", text, 1))).toBe("invalid_cursor")),
  );
  fc.assert(
    fc.property(fc.json(), (json) => {
      const text = Buffer.from(json).toString("base64url");
      expect(codeOf(() => decodeCursor("list", text, 1))).toBe("invalid_cursor");
    }),
  );
});

test("a forged number that is no date is refused", () => {
  for (const forged of ["1e999", "-1e999", "8.64e16", "-1", "-8.64e15"]) {
    const text = Buffer.from(`["workloads",${forged},"wl_1"]`).toString("base64url");
    expect([forged, codeOf(() => decodeCursor("workloads", text, 2))]).toEqual([forged, "invalid_cursor"]);
  }
});
