import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readSettings, SettingsError, settingsTable, unknownVariables } from "./environment.ts";
import { projectFile } from "./project-root.ts";
import { SETTINGS } from "./setting-table.ts";

function problemsOf(environment: Record<string, string>): readonly string[] {
  try {
    readSettings(environment);
    return [];
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return error.problems;
  }
}

describe("without a single variable", () => {
  const settings = readSettings({});

  test("the platform runs on embedded parts, for this machine alone", () => {
    expect(settings).toMatchObject({
      port: 4000,
      host: "127.0.0.1",
      databaseUrl: null,
      redisUrl: null,
      s3Endpoint: null,
      roles: ["all"],
      allowPrivateHosts: [],
      allowUnisolated: false,
      workloadNetwork: "open",
    });
    expect(settings.dataDir).toBe(`${process.cwd()}/.nodus`);
  });

  test("money has its documented constants", () => {
    expect(settings).toMatchObject({
      localRateMicrosPerHour: 100_000n,
      platformFeeBasisPoints: 1_000,
      firstWindowSeconds: 60,
      newTeamCreditMicros: 100_000_000n,
      firstTeamHasPaymentMethod: true,
    });
  });

  test("the CPU stands in for accelerators only beside the embedded database", () => {
    expect(settings.cpuFallback).toBe(true);
    expect(readSettings({ DATABASE_URL: "postgres://db/nodus" }).cpuFallback).toBe(false);
    expect(readSettings({ DATABASE_URL: "postgres://db/nodus", NODUS_CPU_FALLBACK: "1" }).cpuFallback).toBe(true);
    expect(readSettings({ NODUS_CPU_FALLBACK: "0" }).cpuFallback).toBe(false);
  });

  test("developers' comforts are on, and off in production unless asked for", () => {
    expect(settings).toMatchObject({ graphiql: true, introspection: true });
    expect(readSettings({ NODE_ENV: "production" })).toMatchObject({ graphiql: false, introspection: false });
    expect(readSettings({ NODE_ENV: "production", NODUS_GRAPHIQL: "1" }).graphiql).toBe(true);
  });
});

test("each variable is read into its setting", () => {
  const settings = readSettings({
    PORT: "0",
    HOST: "0.0.0.0",
    NODUS_PUBLIC_URL: "https://nodus.example/",
    NODUS_ROLES: "gateway, worker,compute",
    DATABASE_URL: "postgresql://u:p@db:5432/nodus",
    REDIS_URL: "rediss://cache",
    NODUS_LOCAL_ACCELERATORS: "H100:2, a100:1",
    NODUS_ALLOW_PRIVATE_HOSTS: "10.0.0.0/8,fd00::/8,127.0.0.1,Store.Internal",
    NODUS_MASTER_KEY: "ab".repeat(32),
    NODUS_LOCAL_USD_PER_HOUR: "1.25",
    NODUS_PLATFORM_FEE_PERCENT: "12.5",
    NODUS_SUBGRAPH_URLS: "compute=http://compute:4001/",
    NODUS_CORS_ORIGINS: "https://console.example",
  });
  expect(settings).toMatchObject({
    port: 0,
    host: "0.0.0.0",
    publicUrl: "https://nodus.example",
    roles: ["gateway", "worker", "compute"],
    localAccelerators: [
      { family: "H100", count: 2 },
      { family: "A100", count: 1 },
    ],
    allowPrivateHosts: ["10.0.0.0/8", "fd00::/8", "127.0.0.1", "store.internal"],
    masterKey: Buffer.alloc(32, 0xab),
    localRateMicrosPerHour: 1_250_000n,
    platformFeeBasisPoints: 1_250,
    subgraphUrls: [["compute", "http://compute:4001"]],
    corsOrigins: ["https://console.example"],
  });
});

describe("a value that is not acceptable", () => {
  test.each([
    ["PORT", "http"],
    ["PORT", "65536"],
    ["PORT", "-1"],
    ["PORT", "40.5"],
    ["HOST", "a b"],
    ["NODUS_PUBLIC_URL", "nodus.example"],
    ["NODUS_PUBLIC_URL", "ftp://nodus.example"],
    ["DATABASE_URL", "mysql://db"],
    ["REDIS_URL", "localhost:6379"],
    ["NODUS_ROLES", "gateway,chef"],
    ["NODUS_LOCAL_ACCELERATORS", "H100"],
    ["NODUS_LOCAL_ACCELERATORS", "H100:0"],
    ["NODUS_CPU_FALLBACK", "maybe"],
    ["NODUS_WORKLOAD_NETWORK", "all"],
    ["NODUS_ALLOW_PRIVATE_HOSTS", "10.0.0.0/33"],
    ["NODUS_ALLOW_PRIVATE_HOSTS", "http://10.0.0.1"],
    ["NODUS_ALLOW_PRIVATE_HOSTS", "a..b"],
    ["NODUS_MASTER_KEY", "short"],
    ["NODUS_BOOTSTRAP_KEY", "two words"],
    ["NODUS_LOCAL_USD_PER_HOUR", "-1"],
    ["NODUS_LOCAL_USD_PER_HOUR", "1e-3"],
    ["NODUS_PLATFORM_FEE_PERCENT", "100.01"],
    ["NODUS_CORS_ORIGINS", "https://console.example/path"],
    ["NODUS_SUBGRAPH_URLS", "kitchen=http://x"],
    ["NODUS_LOG_LEVEL", "loud"],
  ])("is refused with the variable's name: %s=%s", (variable, value) => {
    const environment = { DATABASE_URL: "postgres://db/nodus", [variable]: value };
    const [problem, ...others] = problemsOf(environment);
    expect(others).toEqual([]);
    expect(problem).toMatch(new RegExp(`^${variable} must `));
  });

  test.each([" ", ";", "\n"])("says commas where addresses of subgraphs are joined by %j", (separator) => {
    const [problem] = problemsOf({ NODUS_SUBGRAPH_URLS: ["compute=http://x", "data=http://y"].join(separator) });
    expect(problem).toContain("pairs separated by commas");
  });

  test("is shown, unless it is a secret", () => {
    expect(problemsOf({ PORT: "80 80" })[0]).toContain('"80 80"');
    expect(problemsOf({ NODUS_MASTER_KEY: "hush-77" })[0]).not.toContain("hush-77");
    expect(problemsOf({ DATABASE_URL: "mysql://u:hush-77@db" })[0]).not.toContain("hush-77");
  });

  test("does not hide another one", () => {
    expect(problemsOf({ PORT: "x", NODUS_LOG_LEVEL: "loud", S3_BUCKET: "B" })).toHaveLength(3);
  });

  test("is refused, never a fault, whatever it is", () => {
    fc.assert(
      fc.property(fc.constantFrom(...Object.values(SETTINGS)), fc.string({ unit: "binary" }), ({ variable }, text) => {
        problemsOf({ [variable]: text });
      }),
      { numRuns: 1_000 },
    );
  });
});

test("half an S3 store is refused, naming what is missing", () => {
  expect(problemsOf({ S3_ENDPOINT: "https://s3.example", S3_BUCKET: "objects" })).toEqual([
    expect.stringMatching(/^S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set too/),
  ]);
});

test("separate processes without a shared database are refused", () => {
  expect(problemsOf({ NODUS_ROLES: "gateway" })).toEqual([expect.stringMatching(/^DATABASE_URL must be set/)]);
});

test("an empty variable is an unset one", () => {
  expect(readSettings({ PORT: "", DATABASE_URL: "" })).toMatchObject({ port: 4000, databaseUrl: null });
});

test("a misspelt variable is found, with the name that was meant", () => {
  expect(
    unknownVariables({ NODUS_DATADIR: "/x", NODUS_SOMETHING_ELSE: "1", PATH: "/bin", NODUS_REGION: "eu" }),
  ).toEqual([
    { variable: "NODUS_DATADIR", meant: "NODUS_DATA_DIR" },
    { variable: "NODUS_SOMETHING_ELSE", meant: null },
  ]);
});

test("settings cannot be changed after they were read", () => {
  expect(() => Object.assign(readSettings({}), { port: 1 })).toThrow(TypeError);
});

describe("the table of settings", () => {
  test("has a row for every variable, with a sentence", () => {
    const rows = settingsTable().split("\n").slice(2);
    expect(rows).toHaveLength(Object.keys(SETTINGS).length);
    for (const row of rows) expect(row).toMatch(/^\| `[A-Z0-9_]+` \| [^|]*\| [A-Z`].*\. \|$/);
  });

  test("stands in the README as it is printed", () => {
    expect(readFileSync(projectFile("README.md"), "utf8")).toContain(settingsTable());
  });
});
