import fc from "fast-check";
import { expect, test } from "vitest";
import { messages, Outgoing } from "./outgoing.ts";
import { EVERY_TOPIC } from "./wakeups.ts";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test("every topic is in some message, and no message reaches PostgreSQL's limit", () => {
  const topic = fc.stringMatching(/^[!-~]{1,500}$/);
  fc.assert(
    fc.property(fc.uniqueArray(topic, { maxLength: 200 }), (topics) => {
      const made = messages(topics);
      expect(made.flatMap((message) => message.split(" "))).toEqual(topics);
      for (const message of made) expect(Buffer.byteLength(message)).toBeLessThan(8_000);
    }),
  );
});

test("a thousand ids go in a handful of messages", () => {
  const topics = Array.from({ length: 1_000 }, (_, n) => `wl_${n.toString().padStart(32, "0")}`);
  expect(messages(topics)).toHaveLength(5);
});

test("topics announced within a few milliseconds are sent together and each once", async () => {
  const sent: string[] = [];
  const outgoing = new Outgoing(async (message) => void sent.push(message), fail);
  for (const topic of ["a", "b", "a", "a"]) outgoing.add(topic);
  await pause(20);
  expect(sent).toEqual(["a b"]);
  await outgoing.close();
});

test("what is no topic wakes everybody", async () => {
  const sent: string[] = [];
  const outgoing = new Outgoing(async (message) => void sent.push(message), fail);
  outgoing.add("two words");
  await outgoing.flush();
  outgoing.add("x".repeat(9_000));
  await outgoing.close();
  expect(sent).toEqual([EVERY_TOPIC, EVERY_TOPIC]);
});

test("topics are kept while the line is down and sent when it is back", async () => {
  const sent: string[] = [];
  const outgoing = new Outgoing(async (message) => void sent.push(message), fail);
  outgoing.pause();
  outgoing.add("a");
  await outgoing.flush();
  expect(sent).toEqual([]);
  await outgoing.resume();
  expect(sent).toEqual(["a"]);
  await outgoing.close();
});

test("a line that is down for long costs one wake-up of everybody, not memory", async () => {
  const sent: string[] = [];
  const outgoing = new Outgoing(async (message) => void sent.push(message), fail);
  outgoing.pause();
  for (let n = 0; n < 20_000; n++) outgoing.add(`topic-${n}`);
  await outgoing.resume();
  const topics = sent.join(" ").split(" ");
  expect(topics[0]).toBe(EVERY_TOPIC);
  expect(topics.length).toBeLessThanOrEqual(5_000);
  await outgoing.close();
});

test("a message that fails is sent again", async () => {
  const sent: string[] = [];
  const errors: unknown[] = [];
  const send = async (message: string) => {
    if (errors.length === 0) throw new Error("no");
    sent.push(message);
  };
  const outgoing = new Outgoing(send, (error) => errors.push(error));
  outgoing.add("a");
  await expect.poll(() => sent, { timeout: 5_000 }).toEqual(["a"]);
  expect(errors).toHaveLength(1);
  await outgoing.close();
});

function fail(error: unknown): void {
  throw error;
}
