import fc from "fast-check";
import { expect, test } from "vitest";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { nextTryAt, RETRY_WAITS_MS } from "./retry-schedule.ts";

const bornAt = new Date("2026-03-01T12:00:00Z");
const until = new Date(bornAt.getTime() + LIMITS.webhookRetriesMs);
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

test("a wait lies between four fifths and all of its step, and never passes the end", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100 }),
      fc.integer({ min: 0, max: LIMITS.webhookRetriesMs - 1 }),
      chance,
      (tries, agedMs, random) => {
        const now = new Date(bornAt.getTime() + agedMs);
        const waitMs = nextTryAt(tries, now, until, random)!.getTime() - now.getTime();
        const stepMs = RETRY_WAITS_MS[tries - 1] ?? RETRY_WAITS_MS.at(-1)!;
        expect(waitMs).toBeGreaterThan(0);
        expect(waitMs).toBeLessThanOrEqual(stepMs);
        expect(waitMs).toBeGreaterThanOrEqual(Math.min(stepMs * 0.8, until.getTime() - now.getTime()));
      },
    ),
  );
});

test("whatever chance says, tries that fail at once end exactly with the day, after fewer than thirty", () => {
  fc.assert(
    fc.property(fc.infiniteStream(chance), (chances) => {
      let at: Date | null = bornAt;
      let last = bornAt;
      let tries = 0;
      while (at) {
        last = at;
        tries++;
        at = nextTryAt(tries, last, until, chances.next().value as number);
      }
      expect(last).toEqual(until);
      expect(tries).toBeGreaterThan(15);
      expect(tries).toBeLessThan(30);
    }),
  );
});
