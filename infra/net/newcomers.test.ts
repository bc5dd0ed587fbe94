import { expect, test } from "vitest";
import { Newcomers } from "./newcomers.ts";

test("the oldest gives way, once; who is known or gone does not", () => {
  const newcomers = new Newcomers(2);
  const gaveWay: number[] = [];
  const come = (n: number) => newcomers.enter(() => gaveWay.push(n));
  const known = come(0);
  come(1);
  known();
  expect(newcomers.count).toBe(1);
  come(2);
  come(3);
  come(4);
  expect(gaveWay).toEqual([1, 2]);
  expect(newcomers.count).toBe(2);
  known();
  expect(newcomers.count).toBe(2);
});
