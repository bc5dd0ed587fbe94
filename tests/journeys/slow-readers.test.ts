import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openStreams } from "../support/crowd.ts";
import { INSPECTABLE, Inspected } from "../support/inspected.ts";
import { sharedPlatform } from "../support/platform.ts";
import { HttpReader, SocketReader } from "../support/stalled-readers.ts";
import { until } from "../support/until.ts";
import { script, settles, stateOf, submit, within } from "../support/workloads.ts";

const MIB = 1024 * 1024;
/** Sixteen bytes each. */
const LINES = 3_750_000;
const STALL_BYTES = 2 * MIB;
/** What three stalled readers may cost together while twenty times as much waits for each of them. */
const HELD_BYTES = 24 * MIB;

const platform = sharedPlatform({ ...INSPECTABLE, NODUS_LOG_CAPTURE_MIB: "64", NODUS_LOG_COMMITTED_MIB: "64" });
let inspected: Inspected;
let id: string;

beforeAll(async () => {
  id = await submit(platform().admin, script(`seq -f %015.0f ${LINES}`));
  await settles(platform().admin, id, 150_000);
  await until("the log is committed", async () => (await stateOf(platform().admin, id)).placements[0].logSha256);
  inspected = await Inspected.open(platform());
}, 200_000);
afterAll(() => inspected?.close());

function digestOfLines(): string {
  const hash = createHash("sha256");
  for (let from = 1; from <= LINES; from += 10_000) {
    const lines = Array.from({ length: 10_000 }, (_, n) => String(from + n).padStart(15, "0"));
    hash.update(`${lines.join("\n")}\n`);
  }
  return hash.digest("hex");
}

test("readers that stall in a log of sixty megabytes slow only themselves, and have it whole when they go on", {
  timeout: 180_000,
}, async () => {
  const client = platform().admin;
  const whole = digestOfLines();
  const before = await inspected.held();
  const stalled = [
    new SocketReader(client, id, STALL_BYTES).open(),
    new HttpReader(client, id, STALL_BYTES).events(),
    new HttpReader(client, id, STALL_BYTES).text(),
  ];
  await until("they stall", () => stalled.every((reader) => reader.bytes >= STALL_BYTES));
  const fast = new SocketReader(client, id).open();
  expect(await within(fast.digest, 60_000, "the fast reader has it all")).toBe(whole);
  for (const reader of stalled) expect(reader.bytes).toBeLessThan(30 * MIB);
  const during = await inspected.held();
  expect(during.bytes - before.bytes).toBeLessThan(HELD_BYTES);
  for (const reader of stalled) reader.goOn();
  for (const reader of stalled) expect(await within(reader.digest, 90_000, "a slow reader has it all")).toBe(whole);
  await expect.poll(() => openStreams(client), { timeout: 5_000, interval: 50 }).toBe(0);
});

test("a reader that goes away while it is stalled leaves nothing upstream", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const reader = new SocketReader(client, id, STALL_BYTES).open();
  await until("it stalls", () => reader.bytes >= STALL_BYTES);
  expect(await openStreams(client)).toBe(1);
  reader.leave();
  await expect.poll(() => openStreams(client), { timeout: 5_000, interval: 50 }).toBe(0);
});
