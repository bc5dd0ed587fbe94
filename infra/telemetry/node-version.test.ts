import { expect, test } from "vitest";
import { nodeProblem } from "./node-version.ts";

test("a Node that lacks what the program uses is refused in words, and this one is not", () => {
  expect(nodeProblem("20.20.2")).toMatch(/runs on Node 24, and this is 20\.20\.2.*start\.mjs/);
  expect(nodeProblem("24.0.0")).toBeNull();
  expect(nodeProblem(process.versions.node)).toBeNull();
});
