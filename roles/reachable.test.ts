import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { explain } from "../cli/explain.ts";
import { redisMissing, testRedis } from "../tests/support/redis.ts";
import { makeDataFolder, seeServers } from "./reachable.ts";

const PASSWORD = "hush-hush-0815";
const database = (change: (url: URL) => void) => {
  const url = new URL(inject("databaseUrl"));
  change(url);
  return { databaseUrl: url.href, redisUrl: null };
};
const redis = (redisUrl: string) => ({ databaseUrl: null, redisUrl });

/** What the person who started it reads. */
async function toldOf(settings: Parameters<typeof seeServers>[0]): Promise<string> {
  return seeServers(settings).then(
    () => "nothing is wrong",
    (error: unknown) => explain(error),
  );
}

test.each([
  [
    "nobody at the database's address",
    { databaseUrl: `postgres://me:${PASSWORD}@127.0.0.1:1/nodus`, redisUrl: null },
    /^DATABASE_URL: nothing listens at 127\.0\.0\.1:1 /,
  ],
  [
    "a database on an unknown host",
    { databaseUrl: `postgres://me:${PASSWORD}@no-such-host.invalid/nodus`, redisUrl: null },
    /^DATABASE_URL: no address is known for the host of no-such-host\.invalid:5432 /,
  ],
  [
    "a wrong password",
    database((url) => {
      url.password = PASSWORD;
    }),
    /^DATABASE_URL: PostgreSQL at \S+ does not let user "\w+" in \(password authentication failed/,
  ],
  [
    "no password",
    database((url) => {
      url.password = "";
    }),
    /^DATABASE_URL: PostgreSQL at \S+ does not let user "\w+" in \(SASL/,
  ],
  [
    "a database that is not there",
    database((url) => {
      url.pathname = "/not_there";
    }),
    /^DATABASE_URL: PostgreSQL at \S+ has no database "not_there"/,
  ],
  [
    "a certificate file that is not there",
    database((url) => url.searchParams.set("sslrootcert", "/no/such.pem")),
    /^DATABASE_URL: it can't be used \(ENOENT/,
  ],
  ["nobody at the address of Redis", redis(`redis://:${PASSWORD}@127.0.0.1:1`), /^REDIS_URL: nothing listens at 127/],
  [
    "Redis on an unknown host",
    redis(`redis://:${PASSWORD}@no-such-host.invalid`),
    /^REDIS_URL: no address is known for the host of no-such-host\.invalid:6379 /,
  ],
])("%s is told by the setting's name, without a stack and a password", async (_, settings, sentence) => {
  const told = await toldOf(settings);
  expect(told).toMatch(sentence);
  expect(told).not.toContain(PASSWORD);
  expect(told).not.toContain("    at ");
});

test("servers that answer are passed, and a password that Redis refuses is told by the setting's name", async ({
  skip,
}) => {
  expect(await toldOf(database(() => {}))).toBe("nothing is wrong");
  const missing = redisMissing();
  if (missing) return skip(missing);
  const server = await testRedis(["--requirepass", "the-right-one"]);
  onTestFinished(() => server.close());
  const at = (password: string) => redis(server.url.replace("//", `//${password}`));
  expect(await toldOf(at(":the-right-one@"))).toBe("nothing is wrong");
  for (const login of ["", `:${PASSWORD}@`]) {
    const told = await toldOf(at(login));
    expect(told).toMatch(/^REDIS_URL: Redis at 127\.0\.0\.1:\d+ does not let this user in /);
    expect(told).not.toContain(PASSWORD);
  }
});

test("a data folder is made, and what is in its way is told by the setting's name", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-folder-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, "file");
  writeFileSync(file, "");
  symlinkSync("circle", path.join(folder, "circle"));
  const made = (dataDir: string) => () => makeDataFolder({ dataDir, databaseUrl: null });
  for (const [dataDir, reason] of [
    [file, "a file is in its way"],
    [path.join(file, "below"), "a file is in its way"],
    ["/proc/nope", "takes no folders"], // Node's own recursive way never comes back from there
    ["/proc/nope/below", "takes no folders"],
    ["/proc", "takes no folders"],
    [path.join(folder, "x".repeat(300)), "too long"],
  ] as const)
    expect(made(dataDir)).toThrow(new RegExp(`NODUS_DATA_DIR must be a folder that this user may write: .*${reason}`));
  expect(made(path.join(folder, "circle"))).toThrow(/NODUS_DATA_DIR must be a folder/);
  const inside = path.join(folder, "a", "b");
  made(inside)();
  expect(made(inside)).not.toThrow();
  expect(readdirSync(inside)).toEqual([]);
});
