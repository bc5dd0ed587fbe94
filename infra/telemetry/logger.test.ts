import { globSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createLogger, type Logger, withoutSecrets } from "./logger.ts";
import { PROJECT_ROOT, projectFile } from "./project-root.ts";

function recorder(): { logger: Logger; lines: string[] } {
  const lines: string[] = [];
  const logger = createLogger({ level: "info", role: "test", destination: { write: (line) => void lines.push(line) } });
  return { logger, lines };
}

test("an entry is one line of JSON with its time, level, role and request id", () => {
  const { logger, lines } = recorder();
  logger.child({ requestId: "req-1" }).info({ workloadId: "wl_1" }, "accepted\nin two lines");
  expect(lines).toHaveLength(1);
  expect(lines[0]!.trimEnd()).not.toContain("\n");
  const entry = JSON.parse(lines[0]!);
  expect(entry).toMatchObject({ level: "info", role: "test", requestId: "req-1", workloadId: "wl_1" });
  expect(new Date(entry.time).toISOString()).toBe(entry.time);
});

describe("a secret", () => {
  test.each([
    [{ authorization: "hush-1" }],
    [{ headers: { authorization: "hush-1" } }],
    [{ req: { headers: { authorization: "hush-1", cookie: "hush-1" } } }],
    [{ settings: { databaseUrl: "hush-1", masterKey: "hush-1" } }],
    [{ password: "hush-1", token: "hush-1", nested: { apiKey: "hush-1", secret: "hush-1" } }],
    [{ url: "postgres://nodus:hush-1@db:5432/nodus" }],
    [{ url: "redis://:hush-1@cache" }],
    [{ note: "sent Bearer hush-1-and-more" }],
    [{ note: 'curl -H "Authorization: Basic aHVzaC0xOmh1c2gtMQ== hush"'.replace(" hush", "") }],
    [{ err: new Error("connect to postgres://nodus:hush-1@db failed", { cause: new Error("nk_hush-1-hush-1") }) }],
  ])("is in no line: %j", (fields) => {
    const { logger, lines } = recorder();
    logger.info(fields, "said");
    expect(lines[0]).toContain("[redacted]");
    expect(lines[0]).not.toMatch(/hush-1|aHVzaC0x/);
    expect(() => JSON.parse(lines[0]!)).not.toThrow();
  });

  test("is in no line of a child either", () => {
    const { logger, lines } = recorder();
    logger.child({ key: "nk_hush-1-hush-1" }).warn("said");
    expect(lines[0]).not.toContain("hush-1");
  });
});

test("a line without secrets is left as it is", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9 .,:/@-]{0,80}$/), (text) => {
      fc.pre(!/:\/\/[^\s]*:[^\s]*@|\b(bearer|basic) /i.test(text));
      expect(withoutSecrets(text)).toBe(text);
    }),
  );
});

test("a line stays JSON whatever is taken out of it", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme" }),
      fc.stringMatching(/^[A-Za-z0-9._~+/=-]{8,40}$/),
      (text, credential) => {
        const line = JSON.stringify({ msg: `${text} Bearer ${credential} ${text}`, url: `http://u:${credential}@h/` });
        expect(() => JSON.parse(withoutSecrets(line))).not.toThrow();
      },
    ),
  );
});

test("an error keeps its type, code and causes, and never its fields", () => {
  const { logger, lines } = recorder();
  const rowError = Object.assign(new Error("duplicate key"), { code: "23505", detail: "Key (email)=(a@b) exists" });
  logger.error({ err: new Error("the command failed", { cause: rowError }) }, "a fault");
  const { err } = JSON.parse(lines[0]!);
  expect(err).toMatchObject({ type: "Error", message: "the command failed", cause: { code: "23505" } });
  expect(lines[0]).not.toContain("a@b");
});

test("no entry of the platform has a member that every line has already, which would stand there twice", () => {
  const twice =
    /\b(?:logger|log)\.(?:trace|debug|info|warn|error|fatal)\(\s*\{(?:[^}]*,)?\s*(?:pid|role|level|time|msg)\s*[:,}]/;
  expect('logger.info({ id, pid: 1 }, "x")').toMatch(twice);
  expect('logger.info({ agentPid: a.pid, level2: 3 }, "x")').not.toMatch(twice);
  const files = globSync("{gateway,infra,intake,rest-compat,roles,subgraphs,workers}/**/*.ts", { cwd: PROJECT_ROOT });
  expect(files.length).toBeGreaterThan(300);
  const found = files.filter(
    (file) => !file.endsWith(".test.ts") && twice.test(readFileSync(projectFile(file), "utf8")),
  );
  expect(found).toEqual([]);
});
