import { expect, test } from "vitest";
import { waitingSentence } from "./waiting.ts";

test("a wait is told with its reason, the offers that were passed over, and what to do", () => {
  const sentence = waitingSentence({ reason: "no_matching_offer", rejected: { compute_class: 1, disk: 2 } });
  expect(sentence).toMatch(
    /^Waiting: no_matching_offer \(offers passed over: 1 by compute_class, 2 by disk\)\. No machine fits: .*--cpu/,
  );
  expect(waitingSentence({ reason: "insufficient_credit" })).toMatch(
    /^Waiting: insufficient_credit\. .*accounts credit/,
  );
});

test("a reason that this release does not know is told without advice", () => {
  expect(waitingSentence({ reason: "eclipse" })).toBe("Waiting: eclipse.");
  expect(waitingSentence({ reason: "toString", rejected: {} })).toBe("Waiting: toString.");
});
