import { hostname } from "node:os";
import pg from "pg";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { emptyDatabase } from "../../tests/support/database.ts";
import { eventually, query } from "../../tests/support/embedded-postgres.ts";
import { createLogger } from "../telemetry/logger.ts";
import { DatabaseInUse, lockPlatform, type Membership, type PlatformLock } from "./single-platform.ts";

const logger = createLogger({ level: "silent", role: "test" });

async function database(): Promise<string> {
  const { url, close } = await emptyDatabase();
  onTestFinished(close);
  return url;
}

async function lock(
  url: string,
  membership: Membership = "alone",
  onLost = (_: DatabaseInUse) => {},
): Promise<PlatformLock> {
  const held = await lockPlatform({ url, membership, logger, onLost });
  onTestFinished(() => held.release());
  return held;
}

/** Ends the session that holds the lock, as a restart of PostgreSQL or a cut cable would. */
/** Sessions that hold the lock of this database. */
async function holders(url: string): Promise<number[]> {
  const rows = await query(
    url,
    "select pid from pg_locks where granted and locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())",
  );
  return rows.map((row) => row.pid as number);
}

async function breakSession(url: string): Promise<void> {
  await query(
    url,
    "select pg_terminate_backend(pid) from pg_locks where granted and locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())",
  );
}

describe("a second platform on one database", () => {
  test("is refused, and told who has it and since when", async () => {
    const url = await database();
    await lock(url);
    const refused = await lock(url).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(DatabaseInUse);
    const { holder, message } = refused as DatabaseInUse;
    expect(holder).toMatchObject({ pid: process.pid, host: hostname() });
    expect(Math.abs(Date.now() - holder!.since.getTime())).toBeLessThan(60_000);
    expect(message).toContain(`process ${process.pid} on ${hostname()}, since 20`);
  });

  test("may start when the first one has let go", async () => {
    const url = await database();
    await (await lock(url)).release();
    expect((await lock(url)).held()).toBe(true);
  });

  test("does not hinder one on another database of the same server", async () => {
    await lock(await database());
    expect((await lock(await database())).held()).toBe(true);
  });
});

test("members of one deployment run beside each other, and never beside a platform that is alone", async () => {
  const url = await database();
  const member = await lock(url, "member");
  const other = await lock(url, "member");
  await expect(lock(url, "alone")).rejects.toThrow(DatabaseInUse);
  await member.release();
  await other.release();
  await lock(url, "alone");
  await expect(lock(url, "member")).rejects.toThrow(DatabaseInUse);
});

describe("when the connection breaks", () => {
  test("the lock is taken again", async () => {
    const url = await database();
    const held = await lock(url);
    const [before] = await holders(url);
    await breakSession(url);
    await eventually(async () => {
      const [after] = await holders(url);
      expect(after).toBeTypeOf("number");
      expect(after).not.toBe(before);
      expect(held.held()).toBe(true);
    });
    await expect(lock(url)).rejects.toThrow(DatabaseInUse);
  });

  test("and another platform was faster, the first one is told once and does not hold it", async () => {
    const url = await database();
    const lost: DatabaseInUse[] = [];
    const held = await lock(url, "alone", (error) => lost.push(error));
    // A platform on another machine, as far as the database can tell, that waits for the lock.
    const rival = new pg.Client({ connectionString: url, application_name: "nodus 4242@elsewhere" });
    await rival.connect();
    onTestFinished(() => rival.end());
    const [row] = await query(
      url,
      "select classid::bigint << 32 | objid::bigint as key from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())",
    );
    const waiting = rival.query("select pg_advisory_lock($1)", [row!.key]);
    await breakSession(url);
    await waiting;
    await eventually(() => expect(lost).toHaveLength(1));
    expect(lost[0]!.holder).toMatchObject({ pid: 4242, host: "elsewhere" });
    expect(held.held()).toBe(false);
  });
});

test("a database that cannot be reached is an error, not a free lock", async () => {
  const url = new URL(inject("databaseUrl"));
  url.pathname = "/no_such_database";
  await expect(lock(url.href)).rejects.toThrow(/does not exist/);
});
