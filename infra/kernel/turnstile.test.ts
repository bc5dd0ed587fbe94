import { describe, expect, it } from "vitest";
import { Turnstile } from "./turnstile.ts";

describe("Turnstile", () => {
  it("lets no more through at once than it may, in order, and goes on after a failure", async () => {
    const turnstile = new Turnstile(2);
    const began: number[] = [];
    let inside = 0;
    let most = 0;
    const work = (i: number) => async () => {
      began.push(i);
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setTimeout(resolve, 1));
      inside--;
      if (i === 1) throw new Error("failed");
      return i;
    };
    const results = await Promise.allSettled([0, 1, 2, 3, 4].map((i) => turnstile.pass(work(i))));
    expect(results.map((result) => result.status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "fulfilled",
      "fulfilled",
    ]);
    expect(began).toEqual([0, 1, 2, 3, 4]);
    expect(most).toBe(2);
  });
});
