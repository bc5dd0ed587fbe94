import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { until } from "../../tests/support/until.ts";
import { type FollowOptions, follow, openFollowers, type Page } from "./follow.ts";
import { Sleepers } from "./wakeups.ts";

const NEVER_MS = 3_600_000;

/** Numbered rows, some of them the last, as a table would hold them; what a reader sees is settled when it asks. */
class Rows {
  readonly sleepers = new Sleepers((error) => {
    throw error;
  });
  readonly wakeups = { on: this.sleepers.on.bind(this.sleepers), healthy: true };
  readonly rows: number[] = [];
  complete = false;
  reads = 0;

  append(count: number): void {
    for (let n = 0; n < count; n++) this.rows.push(this.rows.length + 1);
  }

  async read(
    after: number,
    limit: number,
    answer: () => Promise<void> = async () => {},
  ): Promise<Page<number, number>> {
    this.reads++;
    const rows = this.rows.slice(after, after + limit);
    const done = this.complete && after + rows.length === this.rows.length;
    await answer();
    return { rows, after: after + rows.length, done, more: rows.length === limit };
  }

  follow(changes: Partial<FollowOptions<number, number>> = {}): AsyncIterableIterator<number> {
    const read = (after: number) => this.read(after, 3);
    return follow({ wakeups: this.wakeups, topic: "rows", after: 0, rereadMs: NEVER_MS, read, ...changes });
  }
}

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const seen: T[] = [];
  for await (const row of stream) seen.push(row);
  return seen;
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n + 1);
const pause = (ms = 0) => new Promise<void>((resolve) => setTimeout(resolve, ms));

test("history comes first, then what is appended, then the end", async () => {
  const table = new Rows();
  table.append(7);
  const seen = all(table.follow());
  await pause();
  table.append(2);
  table.sleepers.wake("rows");
  await pause();
  table.append(1);
  table.complete = true;
  table.sleepers.wake("rows");
  expect(await seen).toEqual(numbers(10));
  expect(openFollowers()).toBe(0);
});

test("no gap and no repeat, however appends, wake-ups and slow reads fall together", async () => {
  const step = fc.oneof(
    fc.record({ append: fc.integer({ min: 1, max: 7 }), wake: fc.boolean() }),
    fc.record({ ticks: fc.integer({ min: 0, max: 5 }) }),
  );
  const readTicks = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 20 });
  const tick = async (ticks: number) => {
    for (let n = 0; n < ticks; n++) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 30 }),
    fc.integer({ min: 1, max: 4 }),
    readTicks,
    fc.integer({ min: 0, max: 5 }),
    async (steps, limit, delays, after) => {
      const table = new Rows();
      table.append(after);
      let reads = 0;
      const read = (from: number) =>
        table.read(from, limit, () => {
          const before = delays[reads++ % delays.length] as number;
          return tick(before);
        });
      const seen = all(table.follow({ after, read }));
      for (const move of steps) {
        if ("ticks" in move) await tick(move.ticks);
        else {
          table.append(move.append);
          if (move.wake) table.sleepers.wake("rows");
        }
      }
      table.complete = true;
      table.sleepers.wake("rows"); // a commit is always announced; only the steps between may have lost theirs
      expect(await seen).toEqual(numbers(table.rows.length).slice(after));
    },
  );
  await fc.assert(property, { numRuns: 300 });
  expect(openFollowers()).toBe(0);
});

test("a wake-up during a read is not lost", async () => {
  const table = new Rows();
  table.append(1);
  const read = (after: number) =>
    table.read(after, 10, async () => {
      if (table.rows.length > 1) return;
      table.append(1); // after the read has seen its rows, before its answer arrives
      table.sleepers.wake("rows");
    });
  const stream = table.follow({ read });
  expect((await stream.next()).value).toBe(1);
  expect((await stream.next()).value).toBe(2);
  await stream.return?.();
});

test("a lost wake-up costs one look", async () => {
  const table = new Rows();
  const stream = table.follow({ rereadMs: 5 });
  const first = stream.next();
  await pause();
  table.append(1);
  expect((await first).value).toBe(1);
  await stream.return?.();
});

describe("a thousand followers who share their reads", () => {
  async function silent(changes: Partial<FollowOptions<number, number>>) {
    const table = new Rows();
    table.append(2);
    const share = (after: number) => `team ${after}`;
    const streams = Array.from({ length: 1_000 }, () => table.follow({ share, ...changes }));
    await Promise.all(streams.map(async (stream) => [await stream.next(), await stream.next()]));
    const waiting = streams.map((stream) => stream.next());
    await pause();
    const [opened] = [table.reads];
    table.reads = 0;
    const end = () => Promise.all(streams.map((stream) => stream.return?.()));
    return { table, waiting, opened, end };
  }

  test("read as often as one: when they open, at each look and at each wake-up", async () => {
    const { table, waiting, opened, end } = await silent({ rereadMs: 5 });
    expect(opened).toBeLessThanOrEqual(3); // two rows are there, then none; a look may have fallen between
    await until("a look", () => table.reads > 0);
    const looks = table.reads;
    expect(looks).toBe(1);
    table.append(1);
    table.sleepers.wake("rows");
    expect(new Set((await Promise.all(waiting)).map(({ value }) => value))).toEqual(new Set([3]));
    expect(table.reads - looks).toBeLessThanOrEqual(2); // a look may fall between
    expect(table.sleepers.count).toBe(1);
    await end();
    expect(table.sleepers.count).toBe(0);
  });

  test("read once for each cursor and share, and what one of them is given is nobody else's", async () => {
    const table = new Rows();
    table.append(3);
    const follower = (team: string, after: number) =>
      table.follow({
        after,
        share: (from) => `${team} ${from}`,
        read: async (from) => ({ ...(await table.read(from, 1)), rows: [team] as never }),
      });
    const streams = ["a", "a", "b", "b"].flatMap((team) =>
      [0, 0, 1].map((after) => [team, follower(team, after)] as const),
    );
    for (const [team, { value }] of await Promise.all(streams.map(async ([t, s]) => [t, await s.next()] as const)))
      expect(value).toBe(team);
    expect(table.reads).toBe(4);
    await Promise.all(streams.map(([, stream]) => stream.return?.()));
  });

  test("are all told when their read fails, and none of those who come later", async () => {
    const table = new Rows();
    let reads = 0;
    const read = async (after: number) => {
      if (++reads === 1) throw new Error("the database is gone");
      return table.read(after, 1);
    };
    const streams = Array.from({ length: 1_000 }, () => table.follow({ share: String, read }));
    const outcomes = await Promise.allSettled(streams.map((stream) => stream.next()));
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(["rejected"]));
    table.append(1);
    const later = table.follow({ share: String, read });
    expect((await later.next()).value).toBe(1);
    await later.return?.();
    expect(openFollowers()).toBe(0);
  });
});

test("closing a silent stream settles at once, and the row that was waited for ends too", async () => {
  const table = new Rows();
  const stream = table.follow();
  const waiting = stream.next();
  await pause();
  expect(openFollowers()).toBe(1);
  expect(await stream.return?.()).toEqual({ done: true, value: undefined });
  expect(await waiting).toEqual({ done: true, value: undefined });
  expect(await stream.next()).toEqual({ done: true, value: undefined });
  expect(table.sleepers.count).toBe(0);
  expect(openFollowers()).toBe(0);
});

test("closing does not wait for a read that hangs", async () => {
  const stream = new Rows().follow({ read: () => new Promise<never>(() => {}) });
  const waiting = stream.next();
  await pause();
  await stream.return?.();
  expect(await waiting).toEqual({ done: true, value: undefined });
});

test("a read that fails after the close is nobody's error", async () => {
  const table = new Rows();
  let fail = (_: Error) => {};
  const read = () =>
    new Promise<never>((_, reject) => {
      fail = reject;
    });
  const stream = table.follow({ read });
  const waiting = stream.next();
  await pause();
  await stream.return?.();
  fail(new Error("too late"));
  expect(await waiting).toEqual({ done: true, value: undefined });
});

test("a stream that nobody reads holds nothing", () => {
  const table = new Rows();
  table.follow();
  expect(table.sleepers.count).toBe(0);
  expect(openFollowers()).toBe(0);
});

test("a read that fails ends the stream with its error, once", async () => {
  const table = new Rows();
  const read = async (): Promise<never> => {
    throw new Error("the database is gone");
  };
  const stream = table.follow({ read });
  const [first, second] = [stream.next(), stream.next()];
  await expect(first).rejects.toThrow("the database is gone");
  expect(await second).toEqual({ done: true, value: undefined });
  expect(await stream.next()).toEqual({ done: true, value: undefined });
  expect(openFollowers()).toBe(0);
});

test("an error thrown into the stream ends it", async () => {
  const stream = new Rows().follow();
  void stream.next();
  await expect(stream.throw?.(new Error("mine"))).rejects.toThrow("mine");
  expect(openFollowers()).toBe(0);
});

test("rows asked for ahead arrive in order", async () => {
  const table = new Rows();
  table.append(5);
  const stream = table.follow();
  const ahead = await Promise.all(numbers(5).map(() => stream.next()));
  expect(ahead.map((result) => result.value)).toEqual(numbers(5));
  await stream.return?.();
});

test("a reader that is slow holds one page and reads no further", async () => {
  const table = new Rows();
  table.append(10_000);
  const stream = table.follow();
  await stream.next();
  for (let n = 0; n < 20; n++) {
    table.sleepers.wake("rows");
    await pause();
  }
  expect(table.reads).toBe(1);
  await stream.return?.();
});

test("a cursor may be a keyset", async () => {
  const rows = ["a", "b", "b", "c"].map((name, n) => [name, n] as const);
  const table = new Rows();
  const read = async (after: readonly [string, number]) => {
    const next = rows.find(([name, n]) => name > after[0] || (name === after[0] && n > after[1]));
    return { rows: next ? [next] : [], after: next ?? after, done: !next, more: true };
  };
  const start: readonly [string, number] = ["a", 0];
  const stream = follow({ wakeups: table.wakeups, topic: "rows", after: start, read });
  expect(await all(stream)).toEqual(rows.slice(1));
});

test("ten thousand followers opened and closed on a silent topic leave nothing", async () => {
  const table = new Rows();
  const streams = Array.from({ length: 10_000 }, () => table.follow());
  const waiting = streams.map((stream) => stream.next());
  await pause();
  expect(openFollowers()).toBe(10_000);
  await Promise.all(streams.map((stream) => stream.return?.()));
  expect(table.sleepers.count).toBe(0);
  expect(openFollowers()).toBe(0);
  for (const result of await Promise.all(waiting)) expect(result.done).toBe(true);
});
