import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { SETTINGS } from "../infra/telemetry/setting-table.ts";
import { beginCommand } from "../tests/support/command-line.ts";

vi.setConfig({ testTimeout: 60_000 });

/** Nobody listens there, so whatever gets as far as asking says so. */
const NOWHERE = { NODUS_BASE_URL: "http://127.0.0.1:1", NODUS_API_KEY: "nk_x" };

async function run(args: readonly string[], environment: Record<string, string> = NOWHERE, cwd?: string) {
  return (await beginCommand(args, environment, cwd)).ended;
}

function emptyFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-command-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The commands that a help text lists. */
function listed(help: string): string[] {
  const lines = help.slice(help.indexOf("\nCommands:\n")).split("\n");
  return lines.flatMap((line) => /^ {2}([a-z][a-z-]*) .*/.exec(line)?.[1] ?? []).filter((name) => name !== "help");
}

test("the help names what start.mjs does, the settings, and every command, whose own help works", async () => {
  const { code, stdout } = await run(["--help"]);
  expect(code).toBe(0);
  for (const word of ["NODUS_API_KEY", "NODUS_BASE_URL", "NODUS_DATA_DIR", "DATABASE_URL"])
    expect(stdout).toContain(word);
  const commands = listed(stdout.slice(0, stdout.indexOf("\nSettings are")));
  expect(commands).toEqual(expect.arrayContaining(["up", "install", "build", "test", "bench", "schema", "settings"]));
  const below = (
    await Promise.all(["keys", "accounts"].map(async (name) => [name, await run([name, "--help"])] as const))
  ).flatMap(([name, help]) => listed(help.stdout).map((sub) => [name, sub]));
  expect(below.length).toBeGreaterThan(5);
  for (const args of [...commands.map((name) => [name]), ...below]) {
    const help = await run([...args, "--help"]);
    expect([args, help.code, help.stderr]).toEqual([args, 0, ""]);
    expect(help.stdout).toContain(`Usage: nodus ${args.join(" ")}`);
  }
});

test("every setting is listed with what it means", async () => {
  const { code, stdout } = await run(["settings"]);
  expect(code).toBe(0);
  for (const { variable } of Object.values(SETTINGS)) expect(stdout).toMatch(new RegExp(`^${variable}\\b`, "m"));
});

describe("an option's value that is not acceptable is refused with what would do", () => {
  test.each([
    [["ls", "--status", "foo"], /--status.*'foo'.*Allowed are active, terminal, accepted, .*cancelled\./],
    [["ls", "--status", "running,"], /--status.*Allowed are/],
    [["ls", "--limit", "0x10"], /--limit.*whole number, from 1 to 100/],
    [["keys", "mint", "--scope", "nope"], /--scope.*Allowed choices are workloads:read/],
    [["keys", "mint", "--expires", "2030"], /--expires.*RFC 3339/],
    [["accounts", "set"], /Say what to set: --monthly-cap/],
    [["accounts", "set", "--concurrent-runs", ""], /--concurrent-runs.*whole number/],
    [["accounts", "set", "--payment-method", "maybe"], /--payment-method.*on, off/],
    [["accounts", "set", "--monthly-cap", "a lot"], /--monthly-cap.*US dollars/],
    [["accounts", "credit", "ten"], /'usd'.*US dollars/],
    [["sim", "--days", "1", "--hours", "1"], /--hours <n>' cannot be used with option '--days <n>'/],
    [["sim", "--seeds", "0"], /--seeds.*1 or more/],
    [["sim", "--jobs", "many"], /--jobs.*whole number/],
    [["sim", "--trace", "/nowhere/trace.txt"], /--trace \/nowhere\/trace.txt: the file cannot be written/],
    [["submit", "--key", "", "true"], /--key.*must not be empty/],
    [["submit", "--cpu", "--gpu", "H100", "true"], /--cpu' cannot be used with option '--gpu <family>'/],
    [["submit", "--gpu-count", "3", "true"], /--gpu-count.*1, 2, 4, 8/],
    [["submit", "--memory-gb", "-1", "true"], /--memory-gb.*above 0/],
    [["submit", "--max-cost", "1e3", "true"], /--max-cost.*US dollars/],
    [["submit", "--complete-by", "tomorrow", "true"], /--complete-by.*RFC 3339/],
    [["submit", "--input", "=x", "--", "true"], /--input.*NAME=VALUE/],
    [["submit", "--output", "a=b", "a=c", "--", "true"], /--output.*a is given twice/],
    [["nosuch"], /unknown command 'nosuch'/],
  ])("%j", async (args, sentence) => {
    const { code, stdout, stderr } = await run(args);
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toMatch(/\n +at |No platform answers/);
    expect([code === 0, stdout]).toEqual([false, ""]);
  });
});

test("acceptable values pass, and the command gets as far as the platform", async () => {
  for (const args of [
    ["ls", "--status", "active, completed", "--limit", "100"],
    [
      "submit",
      "--gpu",
      "H100",
      "--gpu-count",
      "2",
      "--memory-gb",
      "0.5",
      "--input",
      "a=asset_1",
      "b=asset_2",
      "--",
      "true",
    ],
    ["submit", "--complete-by", "2030-12-01T18:00:00Z", "--max-cost", "1.5", "--output", "a=x", "--", "true"],
  ])
    expect((await run(args)).stderr).toContain("No platform answers");
});

test.each([
  ["keys", "ls"],
  ["keys", "mint"],
  ["keys", "rotate"],
  ["accounts", "show"],
])("%s %s where no platform is says which setting to give, and makes nothing", async (...args) => {
  const folder = emptyFolder();
  for (const environment of [{}, { NODUS_DATA_DIR: path.join(folder, "other") }]) {
    const { code, stderr } = await run(args, environment as Record<string, string>, folder);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^There is no platform's data in .*NODUS_DATA_DIR.*DATABASE_URL/);
  }
  expect(existsSync(path.join(folder, ".nodus"))).toBe(false);
  expect(existsSync(path.join(folder, "other"))).toBe(false);
});

test("a data folder that cannot be made ends the start at once with the setting's name", async () => {
  for (const dataDir of ["/proc/nope", "/proc/nope/below", "/proc", "/dev/null", "/dev/null/x"]) {
    const { code, stderr } = await run(["up"], { PORT: "0", NODUS_DATA_DIR: dataDir });
    expect(stderr).toMatch(/NODUS_DATA_DIR must be a folder that this user may write: .*\(it is "\/(proc|dev)/);
    expect([code, stderr.trimEnd().split("\n").length]).toEqual([2, 2]);
  }
});

test("a role that is named twice, or beside all, and a subgraph with two URLs are refused", async () => {
  const told = async (environment: Record<string, string>) =>
    (
      await run(["up"], {
        PORT: "0",
        NODUS_DATA_DIR: "/dev/null",
        DATABASE_URL: "postgres://x@127.0.0.1:1/x",
        ...environment,
      })
    ).stderr;
  expect(await told({ NODUS_ROLES: "gateway,worker,gateway" })).toMatch(/NODUS_ROLES names gateway twice/);
  expect(await told({ NODUS_ROLES: "all,gateway" })).toMatch(/NODUS_ROLES is all, or a list of the others/);
  const urls = "compute=http://a,compute=http://b";
  expect(await told({ NODUS_ROLES: "gateway", NODUS_SUBGRAPH_URLS: urls })).toMatch(
    /NODUS_SUBGRAPH_URLS names compute twice/,
  );
});
