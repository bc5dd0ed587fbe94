import fc from "fast-check";
import { expect, test } from "vitest";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { context, minutes, offer, spec } from "../../../tests/support/match-fixture.ts";
import { type Match, matchOffers } from "./match-offers.ts";
import { RememberedMatches } from "./remembered-matches.ts";

const MEMORY_MINUTES = LIMITS.failedBootMemoryMs / 60_000;
/** Around the moments at which a quarantine ends or a failed boot is forgotten. */
const moment = fc
  .tuple(fc.constantFrom(0, 1, 2, MEMORY_MINUTES, MEMORY_MINUTES + 1), fc.constantFrom(-0.001, 0, 0.001))
  .map(([whole, around]) => minutes(whole + around));
const supplier = fc.constantFrom("sim", "other");
const anyOffer = fc
  .record({
    supplier,
    sku: fc.constantFrom("s1", "s2", "s3"),
    rateMicrosPerHour: fc.bigInt({ min: 0n, max: 3n }),
    quarantinedUntil: fc.option(moment),
    failuresInRow: fc.constantFrom(0, 1),
  })
  .map(offer);
const silence = fc.uniqueArray(supplier).map((names) => new Set(names));

test("property: what is remembered holds only while looking again would give the same", () => {
  fc.assert(
    fc.property(
      fc.array(anyOffer, { maxLength: 12 }),
      fc.tuple(moment, silence),
      fc.tuple(moment, silence),
      (offers, [then, silentThen], [now, silentNow]) => {
        const remembered = new RememberedMatches(offers, silentThen, then);
        const match = (at: Date, silentSuppliers: ReadonlySet<string>) =>
          matchOffers(spec(), offers, context({ now: at, silentSuppliers }));
        const known = remembered.of("one", () => match(then, silentThen));
        expect(remembered.holds(silentThen, then)).toBe(true);
        if (remembered.holds(silentNow, now)) expect(match(now, silentNow)).toEqual(known);
      },
    ),
    { numRuns: 500 },
  );
});

test("a quarantine's end and a clock that is set back are the end of what is remembered", () => {
  const remembered = new RememberedMatches([offer({ quarantinedUntil: minutes(2) })], new Set(), minutes(1));
  expect(remembered.holds(new Set(), minutes(1.9))).toBe(true);
  expect(remembered.holds(new Set(), minutes(2))).toBe(false);
  expect(remembered.holds(new Set(), minutes(0.9))).toBe(false);
  expect(remembered.holds(new Set(["sim"]), minutes(1))).toBe(false);
});

test("a likeness is matched once, and what is kept is bounded by the candidates of all together", () => {
  const remembered = new RememberedMatches([], new Set(), minutes(0));
  let looked = 0;
  const wide = (count: number) => (): Match => {
    looked++;
    return { ranked: Array(count), rejected: { counts: {}, examples: [] }, nearest: null };
  };
  for (let again = 0; again < 3; again++) remembered.of("small", wide(1));
  expect(looked).toBe(1);
  remembered.of("huge", wide(LIMITS.rememberedCandidates));
  remembered.of("huge", wide(LIMITS.rememberedCandidates));
  expect(looked).toBe(2);
  remembered.of("small", wide(1));
  expect(looked).toBe(3);
});
