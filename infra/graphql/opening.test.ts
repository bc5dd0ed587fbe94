import { expect, test } from "vitest";
import { COMMON, Refused } from "../kernel/refusal.ts";
import { opening } from "./opening.ts";

/** Opens a stream of one item that ends with the error. */
const streamThatEndsWith = (error: Error) =>
  opening(() =>
    (async function* () {
      yield 1;
      throw error;
    })(),
  )({ args: {}, context: {} });

async function endOf(stream: Promise<AsyncIterable<number>>): Promise<{ items: number[]; error: unknown }> {
  const items: number[] = [];
  try {
    for await (const item of await stream) items.push(item);
  } catch (error) {
    return { items, error };
  }
  return { items, error: null };
}

test("a stream whose database goes away in the middle ends with a refusal that clients repeat", async () => {
  const broken = Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
  const { items, error } = await endOf(streamThatEndsWith(broken));
  expect(items).toEqual([1]);
  expect(error).toMatchObject({ extensions: { code: "unavailable", status: 503 } });
});

test("a stream that is refused in the middle ends with that refusal", async () => {
  const { error } = await endOf(streamThatEndsWith(new Refused(COMMON.not_found)));
  expect(error).toMatchObject({ extensions: { code: COMMON.not_found.code, status: 404 } });
});

test("any other fault ends the stream as it is, to be masked and logged", async () => {
  const fault = new Error("a bug");
  expect((await endOf(streamThatEndsWith(fault))).error).toBe(fault);
});

test("closing the stream closes what it reads from", async () => {
  let closed = false;
  const stream = await opening(() =>
    (async function* () {
      try {
        yield 1;
        yield 2;
      } finally {
        closed = true;
      }
    })(),
  )({ args: {}, context: {} });
  for await (const _ of stream) break;
  expect(closed).toBe(true);
});
