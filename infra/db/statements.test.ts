import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase([]);
  await database.db.sql("create table thing (id int primary key)");
  await database.db.sql("insert into thing select generate_series(0, 5)");
}, 60_000);
afterAll(() => database.close());

const READ = "select pg_backend_pid() as pid from thing";
const LOCKING = ["for share", "for key share", "for update", "for no key update", "FOR KEY\n  SHARE"];

test("reads of a turn share a connection, and whatever may wait for a row has one of its own, however it asks for the lock", async () => {
  const sessionOf = async (text: string) => (await database.db.sql<{ pid: number }>(text))[0]!.pid;
  const turn = [
    READ,
    ...LOCKING.map((lock, id) => `${READ} where id = ${id} ${lock}`),
    "update thing set id = id where id = 5 returning pg_backend_pid() as pid",
    `${READ} limit 1`,
  ];
  const sessions = await Promise.all(turn.map(sessionOf));
  expect(sessions.at(-1)).toBe(sessions[0]);
  expect(new Set(sessions).size).toBe(turn.length - 1);
}, 30_000);
