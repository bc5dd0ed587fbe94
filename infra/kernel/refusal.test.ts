import { describe, expect, test } from "vitest";
import { COMMON, Refused, refusals } from "./refusal.ts";

describe("a refusal", () => {
  const KINDS = refusals({ asset_in_use: [409, "The asset is in use.", "Wait until the workload has ended."] });

  test("speaks with its kind's words unless the case says more", () => {
    expect(new Refused(KINDS.asset_in_use)).toMatchObject({
      message: "The asset is in use.",
      fix: "Wait until the workload has ended.",
      kind: { code: "asset_in_use", status: 409 },
    });
    expect(new Refused(KINDS.asset_in_use, { message: "wl_1 uses it.", fix: "Cancel wl_1." })).toMatchObject({
      message: "wl_1 uses it.",
      fix: "Cancel wl_1.",
    });
  });

  test("cannot be changed by whoever handles it", () => {
    expect(() => Object.assign(KINDS.asset_in_use, { status: 200 })).toThrow(TypeError);
    expect(() => Object.assign(KINDS, { other: 1 })).toThrow(TypeError);
  });
});

describe("the common catalogue", () => {
  const kinds = Object.entries(COMMON);

  test("names each kind by its key, with a sentence for what is wrong and one for what to do", () => {
    for (const [key, kind] of kinds) {
      expect(kind.code).toBe(key);
      expect(kind.code).toMatch(/^[a-z][a-z_]*$/);
      for (const sentence of [kind.message, kind.fix]) expect(sentence).toMatch(/^[A-Z].*\.$/);
    }
  });

  test("uses a status that clients retry only for what a retry can mend", () => {
    const retried = kinds
      .filter(([, { status }]) => [408, 429, 500, 502, 503, 504].includes(status))
      .map(([key]) => key);
    expect(retried.sort()).toEqual(["idempotency_in_flight", "rate_limited", "unavailable"]);
  });
});
