import { expect, test } from "vitest";
import { Slots } from "./slots.ts";

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

test("no more than so many run at once, in the order in which they came, and failures free their slot", async () => {
  const slots = new Slots(3);
  const started: number[] = [];
  let running = 0;
  let most = 0;
  const work = (n: number) => async () => {
    started.push(n);
    most = Math.max(most, ++running);
    await tick();
    running--;
    if (n % 4 === 0) throw new Error("failed");
  };
  await Promise.allSettled(Array.from({ length: 20 }, (_, n) => slots.use(work(n))));
  expect(most).toBe(3);
  expect(started).toEqual(Array.from({ length: 20 }, (_, n) => n));
  expect(await slots.use(async () => "free again")).toBe("free again");
});
