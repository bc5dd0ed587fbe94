import pg from "pg";
import { expect, inject, test } from "vitest";
import { isDatabaseUnavailable } from "./unavailable.ts";

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

test("a cause counts, and what is no error does not", () => {
  const cause = Object.assign(new Error("gone"), { code: "57P01" });
  expect(isDatabaseUnavailable(new Error("a command failed", { cause }))).toBe(true);
  expect(isDatabaseUnavailable(Object.assign(new Error("duplicate key"), { code: "23505" }))).toBe(false);
  expect(isDatabaseUnavailable("57P01")).toBe(false);
});
