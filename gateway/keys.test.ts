import { describe, expect, it } from "vitest";
import { FakeClock } from "../infra/kernel/clock.ts";
import { LIMITS } from "../infra/kernel/limits.ts";
import { actor, memoryLog } from "../tests/federation/graph.ts";
import { until } from "../tests/federation/served.ts";
import { bearerKey, Keys } from "./keys.ts";

function keysWith(known: Record<string, ReturnType<typeof actor>>) {
  const clock = new FakeClock();
  const { log, lines } = memoryLog();
  let lookUps = 0;
  let failing = false;
  const keys = new Keys(
    async (apiKey) => {
      lookUps++;
      if (failing) throw new Error("no database");
      return known[apiKey] ?? null;
    },
    clock,
    log,
    5_000,
  );
  return {
    keys,
    clock,
    lines,
    lookUps: () => lookUps,
    fail: (is: boolean) => {
      failing = is;
    },
  };
}

describe("keys", () => {
  it("are looked up once in five seconds, concurrent requests included", async () => {
    const { keys, clock, lookUps } = keysWith({ nk_a: actor("key_a") });
    await Promise.all([keys.actorFor("nk_a"), keys.actorFor("nk_a")]);
    await keys.actorFor("nk_a");
    expect(lookUps()).toBe(1);
    await clock.advance(5_000);
    expect((await keys.actorFor("nk_a")).keyId).toBe("key_a");
    expect(lookUps()).toBe(2);
  });

  it("that are unknown are refused, and looked up again after a second", async () => {
    const known: Record<string, ReturnType<typeof actor>> = {};
    const { keys, clock } = keysWith(known);
    await expect(keys.actorFor("nk_new")).rejects.toMatchObject({ kind: { code: "unauthorized" } });
    known.nk_new = actor("key_new");
    await expect(keys.actorFor("nk_new")).rejects.toMatchObject({ kind: { code: "unauthorized" } });
    await clock.advance(1_000);
    expect((await keys.actorFor("nk_new")).keyId).toBe("key_new");
  });

  it("that were revoked are forgotten at once", async () => {
    const known = { nk_a: actor("key_a") } as Record<string, ReturnType<typeof actor>>;
    const { keys } = keysWith(known);
    await keys.actorFor("nk_a");
    delete known.nk_a;
    keys.revoked("key_a");
    await expect(keys.actorFor("nk_a")).rejects.toMatchObject({ kind: { code: "unauthorized" } });
  });

  it("that can't be checked are not called wrong", async () => {
    const { keys, fail, lines } = keysWith({ nk_a: actor("key_a") });
    fail(true);
    await expect(keys.actorFor("nk_a")).rejects.toMatchObject({ kind: { code: "unavailable", status: 503 } });
    expect(JSON.stringify(lines)).toContain("no database");
    expect(JSON.stringify(lines)).not.toContain("nk_a");
    fail(false);
    expect((await keys.actorFor("nk_a")).keyId).toBe("key_a");
  });

  it("whose look-up hangs are refused in time, and the look-up goes on for who asks next", async () => {
    const clock = new FakeClock();
    const answers: ((found: ReturnType<typeof actor>) => void)[] = [];
    const keys = new Keys(() => new Promise((resolve) => answers.push(resolve)), clock, memoryLog().log, 10_000);
    const asked = [keys.actorFor("nk_a"), keys.actorFor("nk_a")].map((ask) => ask.catch((error: unknown) => error));
    await clock.advance(LIMITS.keyLookUpMs);
    for (const refused of await Promise.all(asked))
      expect(refused).toMatchObject({ kind: { code: "unavailable", status: 503 }, detail: { retryAfterSeconds: 1 } });
    const next = keys.actorFor("nk_a");
    expect(answers).toHaveLength(1);
    answers[0]!(actor("key_a"));
    expect((await next).keyId).toBe("key_a");
  });

  it("whose look-up never ends are looked up again once that is stale", async () => {
    const clock = new FakeClock();
    let lookUps = 0;
    const hangs = () => new Promise<never>(() => {});
    const resolve = async () => (lookUps++ === 0 ? hangs() : actor("key_a"));
    const keys = new Keys(resolve, clock, memoryLog().log, LIMITS.keyLookUpMs);
    const refused = keys.actorFor("nk_a").catch((error: unknown) => error);
    await clock.advance(LIMITS.keyLookUpMs);
    expect(await refused).toMatchObject({ kind: { code: "unavailable" } });
    expect((await keys.actorFor("nk_a")).keyId).toBe("key_a");
  });

  it("too long to be one are refused without a look-up", async () => {
    const { keys, lookUps } = keysWith({});
    await expect(keys.actorFor("x".repeat(10_000))).rejects.toMatchObject({ kind: { code: "unauthorized" } });
    expect(lookUps()).toBe(0);
  });

  it("that expire end what is watched, but not while nobody can say", async () => {
    const known = { nk_a: actor("key_a") } as Record<string, ReturnType<typeof actor>>;
    const { keys, clock, fail } = keysWith(known);
    let ended = 0;
    keys.watch(await keys.actorFor("nk_a"), () => ended++);
    fail(true);
    await clock.advance(12_000);
    expect(ended).toBe(0);
    fail(false);
    delete known.nk_a;
    await clock.advance(6_000);
    await until(() => ended > 0, "the stream was ended");
  });

  it("are no longer watched once the stream has ended by itself", async () => {
    const { keys } = keysWith({ nk_a: actor("key_a") });
    let ended = 0;
    const unwatch = keys.watch(await keys.actorFor("nk_a"), () => ended++);
    unwatch();
    keys.revoked("key_a");
    expect([ended, keys.watched]).toEqual([0, 0]);
  });
});

it.each([
  ["Bearer nk_1", "nk_1"],
  ["bearer  nk_1 ", "nk_1"],
  ["Basic abc", null],
  ["Bearer", null],
  ["Bearer a b", null],
  [undefined, null],
])("reads the header %j as %j", (header, key) => {
  expect(bearerKey(header)).toBe(key);
});
