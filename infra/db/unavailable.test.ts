import pg from "pg";
import { expect, inject, test } from "vitest";
import { asRefusal } from "../graphql/errors.ts";
import { Database } from "./database.ts";
import {
  isConnectionLost,
  isDatabaseUnavailable,
  isOutOfResources,
  isWaitForConnectionOver,
  isWaitForOthersOver,
  TeamBusy,
} from "./unavailable.ts";

test("a server that is not there, and one that ends the session, are told from a statement that is wrong", async () => {
  const nobody = new pg.Client({ host: "127.0.0.1", port: 1 });
  expect(isDatabaseUnavailable(await nobody.connect().catch((error: unknown) => error))).toBe(true);

  const client = new pg.Client({ connectionString: inject("databaseUrl") });
  client.on("error", () => {}); // the session is ended on purpose below
  await client.connect();
  expect(isDatabaseUnavailable(await client.query("select nothing").catch((error: unknown) => error))).toBe(false);
  const ended = await client.query("select pg_terminate_backend(pg_backend_pid())").catch((error: unknown) => error);
  expect(isDatabaseUnavailable(ended)).toBe(true);
  expect(isDatabaseUnavailable(await client.query("select 1").catch((error: unknown) => error))).toBe(true);
  await client.end().catch(() => {}); // already broken
});

test.each(["25P03", "57P05", "55P03", "57P01", "08006", "53300"])(
  "a statement that ends with %s may work in a moment",
  (code) => {
    expect(isDatabaseUnavailable(Object.assign(new Error("no"), { code }))).toBe(true);
  },
);

test("a cause counts, and what is no error does not", () => {
  const cause = Object.assign(new Error("gone"), { code: "57P01" });
  expect(isDatabaseUnavailable(new Error("a command failed", { cause }))).toBe(true);
  expect(isDatabaseUnavailable(Object.assign(new Error("duplicate key"), { code: "23505" }))).toBe(false);
  expect(isDatabaseUnavailable("57P01")).toBe(false);
});

test.each([
  ["57P01", true],
  ["25P03", true],
  ["08006", true],
  ["ECONNRESET", true],
  ["EPIPE", true],
  ["ETIMEDOUT", true],
  ["ECONNREFUSED", false], // nothing was sent
  ["ENOENT", false], // may be any file's
  ["53100", false],
  ["55P03", false],
  ["23505", false],
])("an error with %s says of a connection that broke under a statement: %s", (code, isLost) => {
  const error = Object.assign(new Error("no"), { code });
  expect(isConnectionLost(error)).toBe(isLost);
  expect(isConnectionLost(new Error("a command failed", { cause: error }))).toBe(isLost);
  expect(isOutOfResources(error)).toBe(code === "53100");
});

test("what a team waits for in vain counts below another error too", () => {
  const error = new Error("a command failed", { cause: new TeamBusy() });
  expect([isWaitForOthersOver(error), isDatabaseUnavailable(error), isConnectionLost(error)]).toEqual([
    true,
    true,
    false,
  ]);
});

test("who waits too long for a free connection is told to come again, and the next one is served", async () => {
  const db = await Database.open({
    url: inject("databaseUrl"),
    entities: [],
    poolSize: 1,
    connectionWaitMs: 200,
  });
  const held = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<void>();
  const command = db.command(async (tx) => {
    await tx.sql("select 1");
    taken.resolve();
    await held.promise;
  });
  await taken.promise;
  for (const late of [() => db.sql("select 1"), () => db.command((tx) => tx.sql("select 1"))]) {
    const error = await late().catch((fault: unknown) => fault);
    expect(isWaitForConnectionOver(error)).toBe(true);
    expect(asRefusal(error)).toMatchObject({
      message: "No connection to the database became free in time.",
      extensions: { code: "unavailable", status: 503, retryAfterSeconds: 1 },
    });
  }
  held.resolve();
  await command;
  expect(await db.sql("select 1 as one")).toEqual([{ one: 1 }]);
  await db.close();
});
