import { createReadStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runColumnar } from "./run-columnar.ts";
import { RECORD_BYTES } from "./sql.ts";
import type { ColumnarFailure, ColumnarTask } from "./task.ts";

const MIB = 1024 * 1024;
const LIMITS = { rows: 1_000, columns: 8, recordBytes: RECORD_BYTES, rowGroupBytes: MIB };
const REWRITE = { kind: "rewrite", input: "in", format: "csv", output: "out", limits: LIMITS } as const;
const DESCRIBE = { kind: "describe", input: "in", format: "csv", limits: LIMITS } as const;
const columns = [{ name: "a", type: "text" }] as const;
const TO_CSV = { kind: "toCsv", input: "in", format: "csv", output: "out", columns, limits: LIMITS } as const;
const TO_PARQUET = { kind: "csvToParquet", input: "in", output: "out", columns } as const;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "nodus-records-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function outcome(task: ColumnarTask, text: string) {
  await writeFile(path.join(folder, "in"), text);
  const { signal } = new AbortController();
  return runColumnar(task, { folder, memoryLimitBytes: 512 * MIB, timeoutMs: 30_000, signal }).then(
    ({ rows }) => rows,
    (error: ColumnarFailure) => error.detail,
  );
}

const TOO_LONG = { reason: "limit", limit: "recordBytes" };

test("a record that is too long is told wherever it is, not passed over", async () => {
  const long = "x".repeat(17 * MIB);
  const files = {
    "the only one": `a\n${long}`,
    "the last one": `a\n${"1\n".repeat(100)}${long}`,
    "one in the middle": `a\n1\n${long}\n2\n`,
    "one in quotes": `a\n1\n"${long}"\n2\n`,
    "one byte too long": `a\n${"x".repeat(RECORD_BYTES + 1)}\n`,
  };
  for (const [name, text] of Object.entries(files))
    expect([name, await outcome(REWRITE, text)]).toEqual([name, TOO_LONG]);
  for (const task of [DESCRIBE, TO_CSV])
    expect([task.kind, await outcome(task, files["the last one"])]).toEqual([task.kind, TOO_LONG]);
}, 60_000);

test("an exported record that is too long is told wherever it is", async () => {
  const long = "x".repeat(17 * MIB);
  for (const text of [`"1"\n"${long}"\n"2"\n`, `"1"\n${long}`, `"${"x".repeat(RECORD_BYTES)}"\n`])
    expect(await outcome(TO_PARQUET, text)).toEqual(TOO_LONG);
}, 60_000);

test("long records that are allowed all come through, whatever the last one ends with", async () => {
  const record = "x".repeat(7 * MIB);
  for (const end of ["\n", "\nlast"]) {
    const rows = end.length > 1 ? 6 : 5;
    expect([end, await outcome(REWRITE, `a\n${Array(5).fill(record).join("\n")}${end}`)]).toEqual([end, rows]);
  }
  let newlines = 0;
  for await (const chunk of createReadStream(path.join(folder, "out")) as AsyncIterable<Buffer>)
    for (const byte of chunk) if (byte === 10) newlines++;
  expect(newlines).toBe(6);
}, 60_000);

test("a line break in a quoted name loses no row: the rows come through, or the file is refused", async () => {
  expect(await outcome(REWRITE, '"a\r\nb"\n1\n2\n')).toBe(2);
  expect(await outcome(REWRITE, '"a\rb",c\n1,2\n3,4\n')).toBe(2);
  expect(await outcome(REWRITE, '"a\nb",c\r1,2\r3,4')).toBe(2);
  expect(await outcome(REWRITE, '"a\r\nb"\r\n1\r\n2\r\n')).toBe(2);
  expect(await outcome(REWRITE, '"a\nb"\r\n1\r\n2\r\n')).toEqual({ reason: "unreadable" });
  expect(await outcome(REWRITE, '\u{feff}"a\nb"\n1\n2\n')).toEqual({ reason: "unreadable" });
});
