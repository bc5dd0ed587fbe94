import { expect, test } from "vitest";
import { SharedReads } from "./shared-read.ts";

test("readers of one turn share a read that begins after all of them asked", async () => {
  const reads = new SharedReads<number>();
  let rows = 1;
  let count = 0;
  const read = async () => {
    count++;
    return rows;
  };
  const first = reads.read("a", read);
  rows = 2; // somebody writes, and wakes the second reader
  const second = reads.read("a", read);
  expect(await Promise.all([first, second])).toEqual([2, 2]);
  expect(count).toBe(1);
});

test("a reader that comes while a read is under way gets one of its own", async () => {
  const reads = new SharedReads<number>();
  let rows = 1;
  let finish = () => {};
  const begun = new Promise<void>((begin) => {
    void reads.read("a", () => {
      const seen = rows;
      begin();
      return new Promise((resolve) => {
        finish = () => resolve(seen);
      });
    });
  });
  await begun;
  rows = 2;
  const late = reads.read("a", async () => rows);
  finish();
  expect(await late).toBe(2);
});

test("readers of different things do not share, and a failed read fails those that shared it and nobody later", async () => {
  const reads = new SharedReads<string>();
  const fails = () => Promise.reject(new Error("lost"));
  const outcomes = await Promise.allSettled([
    reads.read("a", fails),
    reads.read("a", async () => "never called"),
    reads.read("b", async () => "b"),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
  expect(await reads.read("a", async () => "again")).toBe("again");
});
