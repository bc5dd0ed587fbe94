import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Actor, SCOPES, SIGNED_ACTOR_TTL_MS, signActor, verifyActor } from "./actor.ts";

const KEY = new Uint8Array(32).fill(7);
const NOW = new Date("2026-03-01T12:00:00Z");

const actors: fc.Arbitrary<Actor> = fc.record({
  tenantId: fc.string(),
  keyId: fc.string(),
  memberId: fc.option(fc.string()),
  email: fc.string({ unit: "grapheme" }),
  name: fc.string({ unit: "grapheme" }),
  role: fc.constantFrom("admin" as const, "member" as const, "team" as const),
  scopes: fc.subarray([...SCOPES]),
});

describe("a signed actor", () => {
  test("is read back as it was, until its time is over", () => {
    fc.assert(
      fc.property(actors, fc.integer({ min: 0, max: SIGNED_ACTOR_TTL_MS - 1 }), (actor, ageMs) => {
        expect(verifyActor(signActor(actor, KEY, NOW), KEY, new Date(NOW.getTime() + ageMs))).toEqual(actor);
      }),
    );
  });

  test("is nobody when its time is over", () => {
    const [actor] = fc.sample(actors, 1);
    expect(verifyActor(signActor(actor!, KEY, NOW), KEY, new Date(NOW.getTime() + SIGNED_ACTOR_TTL_MS))).toBeNull();
  });

  test("is nobody after any change to a single character", () => {
    const [actor] = fc.sample(actors, 1);
    const header = signActor(actor!, KEY, NOW);
    fc.assert(
      fc.property(fc.nat(header.length - 1), fc.constantFrom("A", "b", "0", "_", "."), (at, other) => {
        const changed = header.slice(0, at) + other + header.slice(at + 1);
        // The last character of a base64 text has bits that mean nothing.
        fc.pre(changed !== header && at !== header.length - 1);
        expect(verifyActor(changed, KEY, NOW)).toBeNull();
      }),
    );
  });

  test("is nobody under another key", () => {
    const [actor] = fc.sample(actors, 1);
    expect(verifyActor(signActor(actor!, KEY, NOW), new Uint8Array(32).fill(8), NOW)).toBeNull();
  });

  test("is never made of arbitrary text", () => {
    fc.assert(fc.property(fc.string(), (text) => void expect(verifyActor(text, KEY, NOW)).toBeNull()));
  });
});
