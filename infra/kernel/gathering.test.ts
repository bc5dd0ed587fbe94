import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { Gathering } from "./gathering.ts";

/** Groups that end when they are told to. */
function held(options: { atOnce?: number; most?: number }) {
  const groups: { asked: readonly number[]; end(): void; fail(): void }[] = [];
  const gathering = new Gathering<number, string>(
    (asked) =>
      new Promise((resolve, reject) => {
        const answer = () => resolve(asked.map((n) => `#${n}`));
        groups.push({ asked, end: answer, fail: () => reject(new Error("lost")) });
      }),
    options,
  );
  return { gathering, groups, asked: () => groups.map(({ asked }) => asked) };
}

test("who comes while a group is under way is in the next one, in order, and gets an answer of its own", async () => {
  const { gathering, groups, asked } = held({ atOnce: 1 });
  const first = gathering.join(1);
  await turn();
  const later = [2, 3, 4].map((n) => gathering.join(n));
  await turn();
  expect(asked()).toEqual([[1]]);
  groups[0]!.end();
  expect(await first).toBe("#1");
  await turn();
  expect(asked()).toEqual([[1], [2, 3, 4]]);
  groups[1]!.end();
  expect(await Promise.all(later)).toEqual(["#2", "#3", "#4"]);
});

test("who asks again in the turn of an answer is in the group that starts then", async () => {
  const { gathering, groups, asked } = held({ atOnce: 1 });
  const first = gathering.join(1).then(() => gathering.join(3));
  await turn();
  const second = gathering.join(2);
  groups[0]!.end();
  await turn();
  await turn();
  expect(asked()).toEqual([[1], [2, 3]]);
  groups[1]!.end();
  expect(await Promise.all([first, second])).toEqual(["#3", "#2"]);
});

test("no group is larger than it may be, and no more of them are under way", async () => {
  const { gathering, groups, asked } = held({ atOnce: 2, most: 2 });
  const all = Promise.all([1, 2, 3, 4, 5].map((n) => gathering.join(n)));
  await turn();
  await turn();
  expect(asked()).toEqual([
    [1, 2],
    [3, 4],
  ]);
  groups[0]!.end();
  await turn();
  await turn();
  expect(asked()[2]).toEqual([5]);
  for (const { end } of groups) end();
  expect(await all).toHaveLength(5);
});

test("a group that fails, fails for its members alone", async () => {
  const { gathering, groups } = held({ atOnce: 1, most: 1 });
  const [first, second] = [gathering.join(1), gathering.join(2)];
  first.catch(() => {}); // told below
  await turn();
  groups[0]!.fail();
  await expect(first).rejects.toThrow("lost");
  await turn();
  groups[1]!.end();
  expect(await second).toBe("#2");
});

test("work that does not answer everybody is an error, and so is work that throws before it is a promise", async () => {
  await expect(new Gathering<number, number>(async () => []).join(1)).rejects.toThrow("0 answers to 1 members");
  const broken = new Gathering<number, number>(() => {
    throw new Error("at once");
  });
  await expect(broken.join(1)).rejects.toThrow("at once");
  await expect(broken.join(1)).rejects.toThrow("at once");
});
