import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { until } from "../../tests/support/until.ts";
import { asRefusal } from "../graphql/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import { Database } from "./database.ts";
import { isWaitForLockOver } from "./unavailable.ts";

const POOL = 4;
/** As many connections as three teams whose rows are held, and a fourth, share without being in each other's way. */
const WIDE_POOL = 12;
/** Several times as long as it takes a held team to be tried again. */
const HELD_FOR_MS = 3 * (LIMITS.heldTeamMs + LIMITS.requestLockWaitMs);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
let database: TestDatabase;
let db: Database;
let admin: pg.Client;
beforeAll(async () => {
  database = await testDatabase([]);
  db = await Database.open({ url: database.url, entities: [], poolSize: POOL });
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  await admin.query(
    "create table team (id text primary key, n int not null); insert into team values ('a', 0), ('b', 0), ('c', 0), ('d', 0)",
  );
}, 60_000);
afterAll(async () => {
  await db.close();
  await admin.end();
  await database.close();
});

const add = (team: string) =>
  db.ofTeam(team).command((tx) => tx.sql("update team set n = n + 1 where id = $1", [team]));
const failure = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

test("every connection bounds what it holds and what it waits for, and a team's command says how long it waits", async () => {
  const bounds =
    "select current_setting('idle_in_transaction_session_timeout') as idle, current_setting('lock_timeout') as lock";
  expect(await db.sql(bounds)).toEqual([{ idle: `${LIMITS.idleTransactionMs / 1_000}s`, lock: "2s" }]);
  expect(await db.ofTeam("a").command((tx) => tx.sql(bounds))).toMatchObject([{ lock: "3s" }]);
  expect(await db.command((tx) => tx.sql(bounds), { lockWaitMs: 70 })).toMatchObject([{ lock: "70ms" }]);
  expect(await db.sql(bounds)).toMatchObject([{ lock: "2s" }]);
}, 20_000);

test("a row that somebody holds leaves other teams and all reads their connections", async () => {
  await admin.query("begin");
  await admin.query("update team set n = 100 where id = 'a'");
  const waiting = Array.from({ length: 3 * POOL }, () => failure(add("a")));
  for (let n = 1; n <= 20; n++) {
    await add("b");
    expect(await db.sql("select n from team where id = 'b'")).toEqual([{ n }]);
    expect(await db.ofTeam("a").sql("select n from team where id = 'a'")).toEqual([{ n: 0 }]);
  }
  const ends = await Promise.all(waiting);
  for (const end of ends)
    expect(asRefusal(end)).toMatchObject({ extensions: { code: "unavailable", status: 503, retryAfterSeconds: 1 } });
  expect(db.ofTeam("a").isHeld).toBe(true);
  const job = failure(db.command((tx) => tx.sql("select 1"), { teamId: "a", comesAgain: true }));
  expect(await job).toMatchObject({ name: "TeamBusy" });
  await admin.query("rollback");
  await until("the team's commands go again", async () => (await failure(add("a"))) === null);
  expect(await db.sql("select n from team where id = 'a'")).toEqual([{ n: 1 }]);
}, 60_000);

test("a statement that waits for a held row keeps nothing else waiting that was asked for with it", async () => {
  await admin.query("begin");
  await admin.query("update team set n = 100 where id = 'a'");
  let hasFailed = false;
  const write = failure(db.sql("update team set n = n + 1 where id = 'a'")).finally(() => {
    hasFailed = true;
  });
  const locking = failure(db.sql("select n from team where id = 'a' for update"));
  expect(await db.sql("select count(*)::int as teams from team")).toEqual([{ teams: 4 }]);
  expect(hasFailed).toBe(false);
  expect([await write, await locking]).toMatchObject([{ code: "55P03" }, { code: "55P03" }]);
  await admin.query("rollback");
}, 20_000);

test("a command that leaves its transaction open has lost it, writes nothing and is told to come again", async () => {
  const [before] = await db.sql<{ n: number }>("select n from team where id = 'b'");
  const slow = db.ofTeam("b").command(async (tx) => {
    const [me] = await tx.sql<{ pid: number }>("select pg_backend_pid() as pid");
    await tx.sql("update team set n = 100 where id = 'b'");
    const gone = async () =>
      (await admin.query("select 1 from pg_stat_activity where pid = $1", [me!.pid])).rowCount === 0;
    await until("the session was ended", gone, { timeoutMs: 2 * LIMITS.idleTransactionMs });
    await tx.sql("update team set n = 200 where id = 'b'");
  });
  expect(asRefusal(await failure(slow))).toMatchObject({ extensions: { code: "unavailable", status: 503 } });
  await add("b");
  expect(await db.sql("select n from team where id = 'b'")).toEqual([{ n: before!.n + 1 }]);
}, 60_000);

test("while rows of three teams are held, a fourth is served, whatever of theirs ends well meanwhile", async () => {
  const wide = await Database.open({ url: database.url, entities: [], poolSize: WIDE_POOL });
  await admin.query("begin");
  await admin.query("update team set n = n where id in ('a', 'b', 'c')");
  let isOver = false;
  const inVain = { a: 0, b: 0, c: 0 };
  const work = Object.keys(inVain).flatMap((team) => {
    const command = (text: string) => failure(wide.ofTeam(team).command((tx) => tx.sql(text)));
    // Needs what is held.
    const waiting = async () => {
      while (!isOver)
        if (isWaitForLockOver(await command(`update team set n = 1 where id = '${team}'`))) inVain[team as "a"]++;
    };
    // Needs nothing that is held.
    const endsWell = async () => {
      for (; !isOver; await pause(20)) await command("select 1");
    };
    return [...Array.from({ length: WIDE_POOL }, waiting), endsWell(), endsWell()];
  });
  const slowestMs: number[] = [];
  const endsAtMs = performance.now() + HELD_FOR_MS;
  for (let n = 1; performance.now() < endsAtMs; n++, await pause(20)) {
    const sinceMs = performance.now();
    await wide.ofTeam("d").command((tx) => tx.sql("update team set n = $1 where id = 'd'", [n]));
    expect(await wide.sql("select n from team where id = 'd'")).toEqual([{ n }]);
    slowestMs.push(performance.now() - sinceMs);
  }
  isOver = true;
  await admin.query("rollback");
  await Promise.all(work);
  await wide.close();
  for (const count of Object.values(inVain)) expect(count).toBeGreaterThan(1);
  // Whoever has to wait for one of the held rows' commands waits for as long as a row is waited for.
  expect(Math.max(...slowestMs)).toBeLessThan(LIMITS.lockWaitMs);
}, 60_000);
