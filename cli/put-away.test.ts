import { expect, test } from "vitest";
import { putAway } from "./put-away.ts";

test("what cannot be closed is told, keeps nothing else open, and is no error of the command", async () => {
  const told: string[] = [];
  const closed: string[] = [];
  await putAway(
    [
      async () => void closed.push("wake-ups"),
      () => Promise.reject(new Error("the line broke")),
      () => {
        throw new Error("the server stays");
      },
      () => void closed.push("database"),
    ],
    (sentence) => void told.push(sentence),
  );
  expect(closed).toEqual(["wake-ups", "database"]);
  expect(told).toEqual([
    "Not everything could be closed (the line broke). That changes nothing about what was done.",
    "Not everything could be closed (the server stays). That changes nothing about what was done.",
  ]);
});

test("a command's own error is the one that is told", async () => {
  const work = async () => {
    try {
      throw new Error("there is no such team");
    } finally {
      await putAway([() => Promise.reject(new Error("the line broke"))], () => {});
    }
  };
  await expect(work()).rejects.toThrow("there is no such team");
});
