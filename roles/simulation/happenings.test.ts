import { expect, test } from "vitest";
import { HappeningCounter, type Happenings, sumOf } from "./happenings.ts";

test("what came up is counted by part, with what the rows tell", async () => {
  const counter = new HappeningCounter();
  counter.count("queue", "emptied");
  counter.count("queue", "emptied");
  counter.count("hosts", "cut off");
  const rows = [{ part: "interruptions", name: "reclaim", count: 3n }];
  const q = { sql: async <R>() => rows as R[] };
  expect(await counter.all(q)).toEqual({
    queue: { emptied: 2 },
    hosts: { "cut off": 1 },
    interruptions: { reclaim: 3 },
  });
});

test("several worlds add up", () => {
  const worlds: Happenings[] = [
    { queue: { emptied: 2 } },
    { queue: { emptied: 1, flooded: 4 }, hosts: { "cut off": 1 } },
  ];
  expect(sumOf(worlds)).toEqual({ queue: { emptied: 3, flooded: 4 }, hosts: { "cut off": 1 } });
  expect(worlds[0]).toEqual({ queue: { emptied: 2 } });
});
