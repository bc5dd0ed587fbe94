import pg from "pg";
import { afterEach, expect, test } from "vitest";
import { emptyDatabase } from "../../tests/support/database.ts";
import { createLogger } from "../telemetry/logger.ts";
import { type Agreement, Disagreement } from "./agreement.ts";
import { lockPlatform, type PlatformLock } from "./single-platform.ts";

const logger = createLogger({ level: "silent", role: "test" });
const held: PlatformLock[] = [];
afterEach(async () => {
  for (const lock of held.splice(0)) await lock.release();
});

const key = (value: string): Agreement => ({ subject: "masterKey", value, refusal: "another master key" });
const store = (value: string): Agreement => ({ subject: "objectStore", value, refusal: "another store" });

async function join(url: string, agreements: Agreement[], onLost: (error: Error) => void = () => {}) {
  const lock = await lockPlatform({ url, membership: "member", agreements, logger, onLost });
  held.push(lock);
  return lock;
}

test("processes that have the same run beside each other, and one that has something else is told what", async () => {
  const database = await emptyDatabase();
  await join(database.url, [key("a"), store("s")]);
  await join(database.url, [store("s"), key("a")]);
  await expect(join(database.url, [key("b"), store("s")])).rejects.toThrow("another master key");
  await expect(join(database.url, [key("a"), store("t")])).rejects.toThrow(new Disagreement("another store"));
  for (const lock of held.splice(0)) await lock.release();
  await join(database.url, [key("b"), store("t")]);
  for (const lock of held.splice(0)) await lock.release();
  await database.close();
});

test("databases of one server do not meddle with each other", async () => {
  const [one, other] = [await emptyDatabase(), await emptyDatabase()];
  await join(one.url, [key("a")]);
  await join(other.url, [key("b")]);
  for (const lock of held.splice(0)) await lock.release();
  await Promise.all([one.close(), other.close()]);
});

test("of processes that disagree and start at once at most one runs", async () => {
  const database = await emptyDatabase();
  for (let round = 0; round < 5; round++) {
    const started = await Promise.allSettled(["a", "b", "c"].map((value) => join(database.url, [key(value)])));
    expect(started.filter(({ status }) => status === "fulfilled").length).toBeLessThanOrEqual(1);
    for (const lock of held.splice(0)) await lock.release();
  }
  await database.close();
});

test("a process whose connection broke goes only when another kind was faster", { timeout: 30_000 }, async () => {
  const database = await emptyDatabase();
  let lost: Error | null = null;
  await join(database.url, [key("a")], (error) => {
    lost = error;
  });
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  // The first one takes its lock again at once, so it may take a few breaks until the other one is faster.
  await expect
    .poll(
      async () => {
        await admin.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
        );
        return join(database.url, [key("b")]).then(
          () => "in",
          () => "refused",
        );
      },
      { interval: 5, timeout: 20_000 },
    )
    .toBe("in");
  await expect.poll(() => lost, { timeout: 10_000 }).toBeInstanceOf(Disagreement);
  await admin.end();
  for (const lock of held.splice(0)) await lock.release();
  await database.close();
});
