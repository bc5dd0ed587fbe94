import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeClock } from "../kernel/clock.ts";
import { BucketSpace } from "./bucket-space.ts";
import { S3Store } from "./s3-store.ts";
import { everySpace } from "./storage-space.ts";

const MIB = 1024 * 1024;

/** A bucket that has room for objects of less than so many bytes. */
let roomBytes = MIB;
let down = false;
const asked: string[] = [];
let server: Server;
let store: S3Store;

beforeAll(async () => {
  server = createServer((request, response) => {
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    request.on("end", () => {
      asked.push(`${request.method} ${bytes}`);
      if (down) response.writeHead(403).end("<Error><Code>AccessDenied</Code></Error>");
      else if (bytes <= roomBytes) response.writeHead(request.method === "DELETE" ? 204 : 200).end();
      else response.writeHead(400).end("<Error><Code>QuotaExceeded</Code></Error>");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const keys = { accessKeyId: "key", secretAccessKey: "secret" };
  store = new S3Store({ endpoint, bucket: "objects", region: "us-east-1", ...keys }, "results");
});
afterAll(() => {
  server?.closeAllConnections();
  server?.close();
});

function watched() {
  const told: string[] = [];
  const note = (_: object, text: string) => void told.push(text);
  const logger = { warn: note, info: note } as unknown as ConstructorParameters<typeof BucketSpace>[0]["logger"];
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  const space = new BucketSpace({ store, clock, logger });
  /** What is answered once a new look is over. */
  const afterALook = async () => {
    await clock.advance(15_000);
    await space.shortage();
    await space.settled();
    return space.shortage();
  };
  return { told, clock, space, afterALook };
}

test("a bucket that refuses a probe is a shortage, told once, until it takes one again", async () => {
  const { told, clock, space, afterALook } = watched();
  roomBytes = 100; // a few bytes still fit
  expect(await space.shortage()).toBeNull(); // nobody waits for the store
  await space.settled();
  expect(await space.shortage()).toBe("The platform's object store has no space left.");
  expect(await afterALook()).not.toBeNull();
  roomBytes = MIB;
  await clock.advance(14_999);
  await space.shortage();
  await space.settled();
  expect(await space.shortage()).not.toBeNull(); // the last look still holds
  expect(await afterALook()).toBeNull();
  expect(told).toEqual([
    "the object store is full: no new work is admitted",
    "the object store has room again: new work is admitted",
  ]);
  expect(asked.slice(-2)).toEqual([`PUT ${MIB}`, "DELETE 0"]);
});

test("a store that refuses for another reason is no shortage, and ends none", async () => {
  const { told, afterALook } = watched();
  down = true;
  expect(await afterALook()).toBeNull();
  down = false;
  roomBytes = 0;
  expect(await afterALook()).not.toBeNull();
  down = true;
  expect(await afterALook()).not.toBeNull();
  [down, roomBytes] = [false, MIB];
  expect(await afterALook()).toBeNull();
  expect(told).toEqual([
    "the space of the object store could not be looked at",
    "the object store is full: no new work is admitted",
    "the space of the object store could not be looked at",
    "the object store has room again: new work is admitted",
  ]);
});

test("one look at a time is under way, however many ask", async () => {
  const { space } = watched();
  asked.length = 0;
  await Promise.all(Array.from({ length: 50 }, () => space.shortage()));
  await space.settled();
  expect(asked).toEqual([`PUT ${MIB}`, "DELETE 0"]);
});

test("of several places the one without room is told", async () => {
  const place = (answer: string | null) => ({ shortage: async () => answer });
  expect(await everySpace([place(null), place("full")]).shortage()).toBe("full");
  expect(await everySpace([place(null), place(null)]).shortage()).toBeNull();
});
