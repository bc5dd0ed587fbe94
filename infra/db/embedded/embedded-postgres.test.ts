import { spawn } from "node:child_process";
import { chownSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { dataFolder, eventually, holdPostgres, query } from "../../../tests/support/embedded-postgres.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { DatabaseInUse, lockPlatform } from "../single-platform.ts";
import { startEmbeddedPostgres } from "./embedded-postgres.ts";
import { readPidFile } from "./pid-file.ts";

vi.setConfig({ testTimeout: 90_000 });
const logger = createLogger({ level: "silent", role: "test" });

test("a first start makes a database that only the platform's password opens", async () => {
  const dataDir = dataFolder();
  const postgres = await startEmbeddedPostgres({ dataDir, logger });
  try {
    expect(postgres.adopted).toBe(false);
    const [row] = await query(postgres.url, "select current_database() as name, current_setting('fsync') as fsync");
    expect(row).toEqual({ name: "nodus", fsync: "on" });
    const wrong = new URL(postgres.url);
    wrong.password = "wrong";
    await expect(query(wrong.href, "select 1")).rejects.toThrow(/password authentication failed/);
    expect(statSync(path.join(postgres.folder, "password")).mode & 0o777).toBe(0o600);
    expect(statSync(path.join(postgres.folder, "cluster")).mode & 0o777).toBe(0o700);
  } finally {
    await postgres.stop();
  }
  await expect(query(postgres.url, "select 1")).rejects.toThrow(/ENOENT|ECONNREFUSED/);
});

test("the server is reached over a socket, and over TCP where the socket's path would be too long", async () => {
  const short = dataFolder();
  const long = path.join(short, "x".repeat(90));
  for (const [dataDir, host] of [
    [short, encodeURIComponent(path.join(short, "postgres/run"))],
    [long, "127.0.0.1"],
  ] as const) {
    const postgres = await startEmbeddedPostgres({ dataDir, logger, durable: false });
    try {
      expect(new URL(postgres.url).hostname).toBe(host);
      expect(await query(postgres.url, "select 1 as one")).toEqual([{ one: 1 }]);
      const overTcp = postgres.url.replace(new URL(postgres.url).hostname, "127.0.0.1");
      expect(await query(overTcp, "select 1 as one")).toEqual([{ one: 1 }]);
    } finally {
      await postgres.stop();
    }
  }
});

test("started by root, PostgreSQL runs as a user of its own without groups", async ({ skip }) => {
  skip(process.geteuid?.() !== 0, "needs root");
  const postgres = await startEmbeddedPostgres({ dataDir: dataFolder(), logger, durable: false });
  try {
    expect(postgres.uid).toBeGreaterThan(0);
    const status = readFileSync(`/proc/${postgres.pid()}/status`, "utf8");
    expect(status).toMatch(new RegExp(`^Uid:\\s+${postgres.uid}\\s+${postgres.uid}`, "m"));
    expect(status).toMatch(/^Groups:\s*$/m);
  } finally {
    await postgres.stop();
  }
});

test("a database whose server and platform were killed starts again with everything that was committed", async () => {
  const dataDir = dataFolder();
  const first = await holdPostgres(dataDir, { durable: true });
  await query(first.ready.url, "create table kept (n int)");
  await query(first.ready.url, "insert into kept select generate_series(1, 1000)");
  await first.kill();
  process.kill(first.ready.pid, "SIGKILL");

  const postgres = await startEmbeddedPostgres({ dataDir, logger });
  try {
    expect(postgres.adopted).toBe(false);
    expect(await query(postgres.url, "select count(*)::int as n from kept")).toEqual([{ n: 1000 }]);
  } finally {
    await postgres.stop();
  }
});

test("a stale lock whose process id another program has now does not hinder a start", async () => {
  const dataDir = dataFolder();
  const first = await startEmbeddedPostgres({ dataDir, logger, durable: false });
  const [pidFile, socketLock] = ["cluster/postmaster.pid", `run/.s.PGSQL.${new URL(first.url).port}.lock`].map((name) =>
    path.join(first.folder, name),
  );
  const locks = [pidFile!, socketLock!].map((file) => ({ file, text: readFileSync(file, "utf8") }));
  await first.stop();
  // A stranger of the same user, as PostgreSQL tells strangers from servers by the user.
  const stranger = spawn("sleep", ["60"], first.uid === null ? {} : { uid: first.uid, gid: first.uid });
  onTestFinished(() => void stranger.kill("SIGKILL"));
  for (const { file, text } of locks) {
    writeFileSync(file, text.replace(/^\d+/, String(stranger.pid)));
    if (first.uid !== null) chownSync(file, first.uid, first.uid);
  }
  const second = await startEmbeddedPostgres({ dataDir, logger, durable: false, startTimeoutMs: 5_000 });
  expect(second.adopted).toBe(false);
  await second.stop();
});

test("a server whose platform was killed is adopted by the next one, and stopped by it", async () => {
  const dataDir = dataFolder();
  const first = await holdPostgres(dataDir);
  await first.kill();

  const postgres = await startEmbeddedPostgres({ dataDir, logger, durable: false });
  expect(postgres.adopted).toBe(true);
  expect(postgres.url).toBe(first.ready.url);
  expect(postgres.pid()).toBe(first.ready.pid);
  await postgres.stop();
  expect(readPidFile(postgres.folder)).toBeNull();
});

test.each([
  ["its own", false],
  ["an adopted", true],
])("%s server that dies is started again on the same address", async (_, adopt) => {
  const dataDir = dataFolder();
  if (adopt) await (await holdPostgres(dataDir)).kill();
  const postgres = await startEmbeddedPostgres({ dataDir, logger, durable: false });
  try {
    await query(postgres.url, "create table kept ()");
    const killed = postgres.pid();
    process.kill(killed, "SIGKILL");
    await eventually(() => expect(postgres.pid()).not.toBe(killed));
    expect(await eventually(() => query(postgres.url, "select count(*)::int as n from kept"))).toEqual([{ n: 0 }]);
  } finally {
    await postgres.stop();
  }
});

test("two platforms that start on one new data folder at the same moment get the same server", async () => {
  const dataDir = dataFolder();
  const [a, b] = await Promise.all([holdPostgres(dataDir), holdPostgres(dataDir)]);
  expect(a.ready.url).toBe(b.ready.url);
  expect([a.ready.adopted, b.ready.adopted].filter(Boolean)).toHaveLength(1);
  expect(readdirSync(dataDir)).toEqual(["postgres"]);
  await b.kill();
  expect(await a.stop()).toBe(0);
});

test("a second platform on one data folder is refused, and leaves the first one's server running", async () => {
  const dataDir = dataFolder();
  const first = await startEmbeddedPostgres({ dataDir, logger, durable: false });
  const order = { url: first.url, membership: "alone", logger, onLost: () => {} } as const;
  const lock = await lockPlatform(order);
  const second = await startEmbeddedPostgres({ dataDir, logger, durable: false });
  expect(second).toMatchObject({ adopted: true, url: first.url });
  await expect(lockPlatform(order)).rejects.toThrow(DatabaseInUse);
  second.leave();
  expect(lock.held()).toBe(true);
  expect(await query(first.url, "select 1 as one")).toEqual([{ one: 1 }]);
  await lock.release();
  await first.stop();
  await expect(query(first.url, "select 1")).rejects.toThrow(/ENOENT|ECONNREFUSED/);
});

test("a start that fails says why with the end of the log, within its time", async () => {
  const dataDir = dataFolder();
  const postgres = await startEmbeddedPostgres({ dataDir, logger, durable: false });
  await postgres.stop();
  writeFileSync(path.join(postgres.folder, "cluster", "postgresql.conf"), "no_such_parameter = 1\n");
  const start = startEmbeddedPostgres({ dataDir, logger, durable: false, startTimeoutMs: 1_000 });
  await expect(start).rejects.toThrow(/did not start within 1000 ms.*exit code 1[\s\S]*no_such_parameter/);
});

test("a database of another major version is refused, not touched", async () => {
  const dataDir = dataFolder();
  const postgres = await startEmbeddedPostgres({ dataDir, logger, durable: false });
  await postgres.stop();
  writeFileSync(path.join(postgres.folder, "cluster", "PG_VERSION"), "15\n");
  await expect(startEmbeddedPostgres({ dataDir, logger, durable: false })).rejects.toThrow(/written by PostgreSQL 15/);
});

test("statements and rows that fail leave no trace in PostgreSQL's log", async () => {
  const postgres = await startEmbeddedPostgres({ dataDir: dataFolder(), logger, durable: false });
  try {
    await query(postgres.url, "create table t (id int primary key, note text check (note <> 'hush-5531'))");
    await expect(query(postgres.url, "insert into t values (1, 'hush-5531')")).rejects.toThrow(/violates check/);
    const log = readFileSync(path.join(postgres.folder, "postgres.log"), "utf8");
    expect(log).toMatch(/violates check constraint/);
    expect(log).not.toContain("hush-5531");
  } finally {
    await postgres.stop();
  }
});
