import { expect, test } from "vitest";
import { livesOf } from "./living.ts";

const { lived, simulate, analyze } = livesOf(1, 10);

test("a seed gives the same world every time, and another seed another one", async () => {
  const [first, second] = lived;
  await analyze();
  const again = await simulate(first!.seed);
  expect(again).toEqual(first);
  expect(second!.hash).not.toBe(again.hash);
}, 300_000);
