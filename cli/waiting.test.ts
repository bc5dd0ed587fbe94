import { expect, onTestFinished, test } from "vitest";
import { scriptedPlatform } from "../tests/support/scripted-platform.ts";
import { connect } from "./client.ts";
import { GIVE_UP_AFTER_MS, Patience } from "./patience.ts";
import { tellWaits, waitingSentence } from "./waiting.ts";

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

test("losses that lie minutes apart are borne each by itself, however silent it was between them", {
  timeout: 30_000,
}, async () => {
  let now = 0;
  const since = "2030-01-01T00:00:00.000Z";
  const origin = await scriptedPlatform({
    answer: () => ({ workload: { status: "queued", waitingSince: since } }),
    stream: ({ time, next, cut }) => {
      if (time === 1) return cut();
      if (time === 2) {
        now += GIVE_UP_AFTER_MS + 60_000;
        return cut();
      }
      const payload = { reason: "no_capacity", since };
      next({ workloadEvents: { cursor: 1, complete: false, event: { type: "workload.waiting", payload } } });
      next({ workloadEvents: { cursor: 1, complete: true, event: null } });
    },
  });
  const client = connect(origin, "nk_x");
  onTestFinished(() => client.close());
  const sleep = async (ms: number) => {
    now += ms;
  };
  const patience = new Patience({ tell: () => {}, nowMs: () => now, sleep });
  const told: string[] = [];
  await tellWaits(client, "wl_1", (sentence) => void told.push(sentence), new AbortController().signal, patience);
  expect(told).toEqual([expect.stringMatching(/^Waiting: no_capacity\./)]);
});

test("who stops it while the platform is lost is not told of the loss", { timeout: 30_000 }, async () => {
  const stop = new AbortController();
  const origin = await scriptedPlatform({
    answer: () => {
      stop.abort();
      return null;
    },
    stream: ({ cut }) => cut(),
  });
  const client = connect(origin, "nk_x");
  onTestFinished(() => client.close());
  await tellWaits(client, "wl_1", () => {}, stop.signal);
  expect(stop.signal.aborted).toBe(true);
});
