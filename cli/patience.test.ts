import { expect, test } from "vitest";
import { ClientError, PlatformLost } from "./client.ts";
import { GIVE_UP_AFTER_MS, Patience } from "./patience.ts";

const LOST = new PlatformLost("No platform answers.");

/** A patience whose pauses pass at once, on a clock of its own. */
function hurried() {
  const world = { now: 0, told: [] as string[], pauses: [] as number[] };
  const patience = new Patience({
    tell: (sentence) => void world.told.push(sentence),
    nowMs: () => world.now,
    sleep: async (ms) => {
      world.pauses.push(ms);
      world.now += ms;
    },
  });
  return { world, patience };
}

test("a loss is told once, with growing pauses, until the platform answers", async () => {
  const { world, patience } = hurried();
  let tries = 0;
  const answer = await patience.through(async () => {
    if (++tries < 8) throw LOST;
    return "here";
  });
  expect(answer).toBe("here");
  expect(world.told).toEqual(["No platform answers. Trying again for up to 5 minutes."]);
  expect(world.pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
});

test("a platform that stays away is given up after the time that was told", async () => {
  const { world, patience } = hurried();
  const away = patience.through(() => Promise.reject(LOST));
  await expect(away).rejects.toThrow(/^No platform answers\. It has been away for 5 minutes: /);
  await expect(away).rejects.toBeInstanceOf(PlatformLost);
  expect(world.now).toBeGreaterThanOrEqual(GIVE_UP_AFTER_MS);
  expect(world.now).toBeLessThan(GIVE_UP_AFTER_MS + 5_001);
});

test("what is given up ends with what the person can do then", async () => {
  let now = 0;
  const sleep = async (ms: number) => {
    now += ms;
  };
  const patience = new Patience({ tell: () => {}, nowMs: () => now, sleep, later: "look again" });
  await expect(patience.through(() => Promise.reject(LOST))).rejects.toThrow(/ for 5 minutes: look again\.$/);
});

test("a stream that breaks again and again at once is given up, though the platform answers in between", async () => {
  const { world, patience } = hurried();
  const stream = async () => {
    for (;;) {
      await patience.bear(LOST);
      await patience.through(async () => "the platform is there");
    }
  };
  await expect(stream()).rejects.toThrow(/away for 5 minutes/);
  expect(world.told).toHaveLength(1);
});

test("a silent stream that lived for a while, or one that brought something, begins anew with its next loss", async () => {
  const { world, patience } = hurried();
  const longSilence = () => {
    world.now += 60_000;
  };
  for (const revive of [longSilence, () => patience.answered()]) {
    await patience.bear(LOST);
    await patience.through(async () => "the platform is there");
    revive();
  }
  await patience.bear(LOST);
  expect(world.told).toHaveLength(3);
  expect(world.pauses).toEqual([250, 250, 250]);
});

test("a refusal and a fault of ours are not borne", async () => {
  const { world, patience } = hurried();
  const refusal = new ClientError("The key lacks the scope.");
  await expect(patience.through(() => Promise.reject(refusal))).rejects.toBe(refusal);
  const fault = new TypeError("x is not a function");
  await expect(patience.bear(fault)).rejects.toBe(fault);
  expect(world.told).toEqual([]);
});
