import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CsvScanOptions, scanCsv } from "./csv-scan.ts";
import { literal, readCsv, readExactCsv } from "./sql.ts";
import type { ColumnarFailure } from "./task.ts";

let folder: string;
let file: string;
let instance: DuckDBInstance;
let connection: DuckDBConnection;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "nodus-scan-"));
  file = path.join(folder, "table");
  instance = await DuckDBInstance.create(":memory:", { threads: "1", memory_limit: "300MB" });
  connection = await instance.connect();
});
afterAll(async () => {
  connection?.closeSync();
  instance?.closeSync();
  await rm(folder, { recursive: true, force: true });
});

async function engineRows(from: string): Promise<number> {
  return Number((await connection.runAndReadAll(`select count(*) from ${from}`)).getRowsJson()[0]![0]);
}

const OPTIONS: CsvScanOptions = { recordBytes: 1_000, blankIsRecord: true };

async function scanned(text: string, options: Partial<CsvScanOptions> = {}, chunkBytes?: number) {
  await writeFile(file, text);
  return scanCsv(file, { ...OPTIONS, ...options }, chunkBytes);
}

const failed = (text: string, options: Partial<CsvScanOptions> = {}) =>
  scanned(text, options).then(
    () => expect.unreachable("it was taken"),
    (error: ColumnarFailure) => error.detail,
  );

/** A field as it may stand in a file. */
const field = fc.oneof(
  fc.constantFrom("", "x", 'x"', 'x"y"', " ", "  ", "\\N", '""', ' "a\nb"', '"a" ', "é"),
  fc.array(fc.constantFrom("a", ",", "\n", "\r", "\r\n", '""', " "), { maxLength: 5 }).map((p) => `"${p.join("")}"`),
);

const table = fc.integer({ min: 1, max: 3 }).chain((columns) =>
  fc.record({
    columns: fc.constant(columns),
    rows: fc.array(fc.oneof(fc.array(field, { minLength: columns, maxLength: columns }), fc.constant(null)), {
      maxLength: 8,
    }),
    lineEnd: fc.constantFrom("\n", "\r\n", "\r"),
    ended: fc.boolean(),
    mark: fc.constantFrom("", "\u{feff}"),
    chunkBytes: fc.integer({ min: 3, max: 9 }),
  }),
);

test("records are counted as the engine counts them, wherever the chunks of the file end", async () => {
  await fc.assert(
    fc.asyncProperty(table, async ({ columns, rows, lineEnd, ended, mark, chunkBytes }) => {
      const header = ["a", "b", "c"].slice(0, columns).join(",");
      const lines = [header, ...rows.map((row) => row?.join(",") ?? "")];
      const text = mark + lines.join(lineEnd) + (ended ? lineEnd : "");
      const scan = await scanned(text, { blankIsRecord: columns === 1 }, chunkBytes);
      expect(scan.records - 1).toBe(await engineRows(readCsv(literal(file), columns, scan.lineEnd)));
      const last = lines.at(-1) === "" && !ended ? 1 : 0;
      const blank = lines.filter((line) => line === "").length;
      expect(scan.records).toBe(lines.length - (columns === 1 ? last : blank));
    }),
    { numRuns: 400 },
  );
}, 60_000);

test("exact CSV is counted as the engine counts it", async () => {
  const value = fc.oneof(
    fc.constant("\\N"),
    field.filter((text) => text.startsWith('"')),
  );
  const rows = fc.array(fc.tuple(value, value), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(rows, fc.integer({ min: 3, max: 9 }), async (rows, chunkBytes) => {
      const text = rows.map((row) => `${row.join(",")}\n`).join("");
      const { records } = await scanned(text, { blankIsRecord: false, lineEnd: "\n" }, chunkBytes);
      expect(records).toBe(rows.length);
      expect(records).toBe(await engineRows(readExactCsv(literal(file), ["VARCHAR", "VARCHAR"])));
    }),
    { numRuns: 100 },
  );
}, 60_000);

test("a record is as long as its bytes without the line end, in quotes or not, at the end or before", async () => {
  const options = { recordBytes: 4 };
  expect(await scanned('abcd\r\n"12"\r\n1234', options)).toEqual({ records: 3, lineEnd: "\r\n" });
  const limit = { reason: "limit", limit: "recordBytes" };
  for (const text of ["abcde", "a\n12345", "a\n12345\nb", 'a\n"123"\n', 'a\n"\n\n\n\n', "a\r12345\r"])
    expect([text, await failed(text, options)]).toEqual([text, limit]);
  for (const chunkBytes of [3, 4, 5, 6])
    expect(await scanned("abcd\r\n1234\r\n", options, chunkBytes)).toEqual({ records: 2, lineEnd: "\r\n" });
});

test("line ends that differ and quotes that stay open are no CSV", async () => {
  for (const text of ["a\n1\r\n", "a\r\n1\n", "a\n1\r", "a\r1\n", "a\r\n1\r2\r\n", 'a\n"1', 'a\n"1""\n'])
    expect([text, await failed(text)]).toEqual([text, { reason: "unreadable" }]);
  expect(await failed("a\r\n", { lineEnd: "\n" })).toEqual({ reason: "unreadable" });
});
