import { expect, test } from "vitest";
import { Trace } from "./trace.ts";

const entry = { atMs: 3_723_004, actor: "job", action: "a.job", outcome: "over" };

test("equal traces have equal hashes, and every member of every entry counts", () => {
  const hashOf = (...entries: (typeof entry)[]) => {
    const trace = new Trace();
    for (const one of entries) trace.add(one);
    return trace.hash();
  };
  const all = [
    hashOf(),
    hashOf(entry),
    hashOf(entry, entry),
    hashOf({ ...entry, atMs: 0 }),
    hashOf({ ...entry, actor: "host" }),
    hashOf({ ...entry, action: "b.job" }),
    hashOf({ ...entry, outcome: "again" }),
  ];
  expect(new Set(all).size).toBe(all.length);
  expect(hashOf(entry, entry)).toBe(hashOf(entry, entry));
});

test("a listener gets every entry as a line, and the last ones can be asked for", () => {
  const lines: string[] = [];
  const trace = new Trace((line) => lines.push(line));
  for (let n = 0; n < 1_000; n++) trace.add({ ...entry, outcome: String(n) });
  expect(lines[0]).toBe("01:02:03.004\tjob\ta.job\t0");
  expect(trace.count).toBe(1_000);
  expect(trace.last().at(-1)).toBe("01:02:03.004\tjob\ta.job\t999");
  expect(trace.last().length).toBeLessThanOrEqual(60);
});
