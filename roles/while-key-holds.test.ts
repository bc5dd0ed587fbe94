import { expect, test } from "vitest";
import type { Actor } from "../infra/kernel/actor.ts";
import { whileKeyHolds } from "./while-key-holds.ts";

const ACTOR = { keyId: "key_1" } as Actor;

/** A key that a test can end, and how many watch it. */
function key() {
  const watches = new Set<() => void>();
  return {
    watches,
    revoke: () => [...watches].forEach((end) => void end()),
    watch: (_actor: Actor, end: () => void) => {
      watches.add(end);
      return () => void watches.delete(end);
    },
  };
}

async function* chunks(count: number): AsyncGenerator<number> {
  for (let n = 0; n < count; n++) yield n;
}

test("everything comes through while the key holds, and nobody watches it afterwards", async () => {
  const keys = key();
  const seen: number[] = [];
  for await (const chunk of whileKeyHolds(keys, ACTOR, chunks(3))) seen.push(chunk);
  expect(seen).toEqual([0, 1, 2]);
  expect(keys.watches.size).toBe(0);
});

test("a key that ends in the middle ends what comes with it, though its sender goes on", async () => {
  const keys = key();
  const stream = whileKeyHolds(keys, ACTOR, chunks(100));
  expect((await stream.next()).value).toBe(0);
  keys.revoke();
  await expect(stream.next()).rejects.toMatchObject({ kind: { code: "key_ended" } });
  expect(keys.watches.size).toBe(0);
});

test("a key that ends while the sender is silent ends the wait for it", async () => {
  const keys = key();
  const silent: AsyncIterator<number> = { next: () => new Promise(() => {}) };
  const waiting = whileKeyHolds(keys, ACTOR, silent).next();
  keys.revoke();
  await expect(waiting).rejects.toMatchObject({ kind: { code: "key_ended" } });
});

test("a sender that fails is heard, and the key is watched no longer", async () => {
  const keys = key();
  const failing: AsyncIterator<number> = { next: () => Promise.reject(new Error("the connection was cut")) };
  await expect(whileKeyHolds(keys, ACTOR, failing).next()).rejects.toThrow("the connection was cut");
  expect(keys.watches.size).toBe(0);
});
