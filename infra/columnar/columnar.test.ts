import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runColumnar } from "./run-columnar.ts";
import type { ColumnarFailure, ColumnarTask, ParquetType, TableFormat, TableLimits } from "./task.ts";

const MEMORY = 320 * 1024 * 1024;
const LIMITS: TableLimits = { rows: 1_000, columns: 8, recordBytes: 100_000, rowGroupBytes: 1_000_000 };

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "nodus-columnar-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const run = <T extends ColumnarTask>(task: T, more: { timeoutMs?: number; signal?: AbortSignal } = {}) =>
  runColumnar(task, {
    folder,
    memoryLimitBytes: MEMORY,
    timeoutMs: 20_000,
    signal: new AbortController().signal,
    ...more,
  });

async function failure(work: Promise<unknown>): Promise<ColumnarFailure> {
  return work.then(
    () => expect.unreachable("the task succeeded"),
    (error: unknown) => error as ColumnarFailure,
  );
}

const exact = (rows: (string | null)[][]) =>
  rows.map((row) => `${row.map((v) => (v === null ? "\\N" : `"${v.replaceAll('"', '""')}"`)).join(",")}\n`).join("");

async function toParquet(types: Record<string, ParquetType>, rows: (string | null)[][]) {
  await writeFile(path.join(folder, "in.csv"), exact(rows));
  const columns = Object.entries(types).map(([name, type]) => ({ name, type }));
  return run({ kind: "csvToParquet", input: "in.csv", output: "out.parquet", columns });
}

async function query(sql: string): Promise<unknown[][]> {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1", memory_limit: "200MB" });
  const connection = await instance.connect();
  try {
    await connection.run("set TimeZone = 'UTC'");
    return (await connection.runAndReadAll(sql.replaceAll("$f", folder))).getRowsJson() as unknown[][];
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

async function described(format: TableFormat, text: string | Buffer, limits = LIMITS) {
  await writeFile(path.join(folder, "table"), text);
  return run({ kind: "describe", input: "table", format, limits });
}

async function csvOf(format: TableFormat, text?: string | Buffer) {
  if (text !== undefined) await writeFile(path.join(folder, "table"), text);
  const { columns } = await run({ kind: "describe", input: "table", format, limits: LIMITS });
  const { rows } = await run({ kind: "toCsv", input: "table", format, output: "out.csv", columns, limits: LIMITS });
  return { columns, rows, text: await readFile(path.join(folder, "out.csv"), "utf8") };
}

describe("exact CSV to Parquet", () => {
  test("each type is written as its own, and NULL in each", async () => {
    const types = {
      i: "int16",
      j: "int32",
      k: "int64",
      f: "float32",
      d: "float64",
      b: "bool",
      t: "text",
      o: "json",
      z: "instant",
      l: "local_timestamp",
    } as const;
    const answer = await toParquet(types, [
      [
        "-32768",
        "2147483647",
        "-9223372036854775808",
        "1.5",
        "NaN",
        "t",
        "",
        '{"a": 1.10}',
        "2020-02-29 12:34:56.123456+00",
        "0044-03-15 01:00:00 BC",
      ],
      Array.from({ length: 10 }, () => null),
    ]);
    expect(answer).toEqual({ rows: 2 });
    expect(await query("select * from '$f/out.parquet'")).toEqual([
      [
        -32768,
        2147483647,
        "-9223372036854775808",
        1.5,
        "NaN",
        true,
        "",
        '{"a": 1.10}',
        "2020-02-29 12:34:56.123456+00",
        "0044-03-15 (BC) 01:00:00",
      ],
      Array.from({ length: 10 }, () => null),
    ]);
    const schema = await query(
      "select name, type, converted_type, repetition_type from parquet_schema('$f/out.parquet') offset 1",
    );
    expect(schema).toEqual([
      ["i", "INT32", "INT_16", "OPTIONAL"],
      ["j", "INT32", "INT_32", "OPTIONAL"],
      ["k", "INT64", "INT_64", "OPTIONAL"],
      ["f", "FLOAT", null, "OPTIONAL"],
      ["d", "DOUBLE", null, "OPTIONAL"],
      ["b", "BOOLEAN", null, "OPTIONAL"],
      ["t", "BYTE_ARRAY", "UTF8", "OPTIONAL"],
      ["o", "BYTE_ARRAY", "JSON", "OPTIONAL"],
      ["z", "INT64", "TIMESTAMP_MICROS", "OPTIONAL"],
      ["l", "INT64", "TIMESTAMP_MICROS", "OPTIONAL"],
    ]);
  });

  test("any texts come out as they went in, an empty one and NULL apart", async () => {
    const text = fc.oneof(
      fc.constantFrom("", "\\N", "NULL", '"', "\n", "\r\n", "\r", "\\.", ",", " "),
      fc.string({ unit: "binary" }),
    );
    const value = fc.option(text.filter((t) => t.isWellFormed() && !t.includes("\0")));
    const table = fc.array(fc.tuple(value, value), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(table, async (rows) => {
        expect(await toParquet({ a: "text", b: "text" }, rows)).toEqual({ rows: rows.length });
        expect(await query("select a, b from '$f/out.parquet'")).toEqual(rows);
      }),
      { numRuns: 8 },
    );
  }, 60_000);

  test("a column may have any name, and one column of NULLs keeps its rows", async () => {
    const name = `"; drop 'x' \n é`;
    expect(await toParquet({ [name]: "text" }, [[null], [""], [null]])).toEqual({ rows: 3 });
    expect(await query(`select * from '$f/out.parquet'`)).toEqual([[null], [""], [null]]);
    expect(await query("select name from parquet_schema('$f/out.parquet') offset 1")).toEqual([[name]]);
  });

  test.each(["infinity", "-infinity", "294276-12-31 23:59:59+00"])(
    "the timestamp %s, which Parquet cannot hold, fails by its column's name and leaves no file",
    async (value) => {
      const failed = await failure(
        toParquet({ id: "int32", until: "instant" }, [
          ["1", "2020-01-01 00:00:00+00"],
          ["2", value],
        ]),
      );
      expect(failed.detail).toEqual({ reason: "unrepresentable", column: "until" });
      expect(failed.message).not.toContain(value);
      await expect(stat(path.join(folder, "out.parquet"))).rejects.toThrow("ENOENT");
    },
  );

  test("a value that is not of its type is told without it", async () => {
    const failed = await failure(toParquet({ a: "int32" }, [["1"], ["hunter2-secret"]]));
    expect(failed.detail).toEqual({ reason: "unreadable", line: 2 });
    expect(JSON.stringify([failed.message, failed.stack, failed.detail])).not.toContain("hunter2");
  });
});

describe("tables of runs", () => {
  test("CSV is text under its header's names; an unquoted empty field is NULL and a quoted one is not", async () => {
    const table = await csvOf("csv", '\u{feff}a,"b ""c""",d\r\n1,,""\r\n"x\ny",\\N,NULL\r\n');
    expect(table.columns).toEqual([
      { name: "a", type: "text" },
      { name: 'b "c"', type: "text" },
      { name: "d", type: "text" },
    ]);
    expect(table.rows).toBe(2);
    expect(table.text).toBe('"1",\\N,""\n"x\ny","\\N","NULL"\n');
  });

  test("JSON Lines keep every digit of a number and the text of what is nested", async () => {
    const lines = [
      '{"n":1.10,"t":"","o":{"k":[1e400,null]}}',
      "",
      '{"t":null,"n":123456789012345678901234567890.5,"constructor":true}',
    ];
    const table = await csvOf("jsonl", `${lines.join("\n")}\n`);
    expect(table.columns).toEqual([
      { name: "n", type: "numeric" },
      { name: "t", type: "text" },
      { name: "o", type: "jsonb" },
      { name: "constructor", type: "boolean" },
    ]);
    expect(table.text).toBe(
      '"1.10","","{""k"":[1e400,null]}",\\N\n"123456789012345678901234567890.5",\\N,\\N,"true"\n',
    );
  });

  test("Parquet's unsigned and wide integers get types that hold them", async () => {
    await query(
      `copy (select 255::utinyint a, 4294967295::uinteger b, 18446744073709551615::ubigint c, 1.50::decimal(10,2) d,
      'x\\x00'::blob e, date '0044-03-15 (BC)' f, timestamptz '2020-01-01 00:00:00+00' g, ''::varchar h, null::varchar i) to '$f/table' (format parquet)`.replace(
        "e, date",
        "e, date",
      ),
    );
    const limits = { ...LIMITS, columns: 9 };
    const { columns } = await run({ kind: "describe", input: "table", format: "parquet", limits });
    expect(columns.map(({ type }) => type)).toEqual([
      "bigint",
      "bigint",
      "numeric",
      "numeric",
      "bytea",
      "date",
      "timestamptz",
      "text",
      "text",
    ]);
    await run({ kind: "toCsv", input: "table", format: "parquet", output: "out.csv", columns, limits });
    expect(await readFile(path.join(folder, "out.csv"), "utf8")).toBe(
      '"255","4294967295","18446744073709551615","1.50","\\x7800","0044-03-15 BC","2020-01-01 00:00:00+00","",\\N\n',
    );
  });

  test("what a table may not be is told by its kind, its column and its line", async () => {
    const details = async (format: TableFormat, text: string) => (await failure(described(format, text))).detail;
    expect(await details("csv", "a,b,a\n1,2,3\n")).toEqual({ reason: "column_names", column: "a" });
    expect(await details("csv", "a,,c\n1,2,3\n")).toEqual({ reason: "column_names", column: "" });
    expect(await details("csv", "")).toEqual({ reason: "unreadable", line: 1 });
    expect(await details("csv", "a,b\n1,2\n3\n")).toMatchObject({ reason: "unreadable" });
    expect(await details("csv", `a\n${"x\n".repeat(1_001)}`)).toEqual({ reason: "limit", limit: "rows", count: 1_001 });
    expect(await details("csv", "1,2,3,4,5,6,7,8,9\n")).toEqual({ reason: "limit", limit: "columns", count: 9 });
    expect(await details("jsonl", '{"a":1}\n{"a":"x"}\n')).toEqual({ reason: "column_type", column: "a", line: 2 });
    expect(await details("jsonl", '{"a":1}\n[1]\n')).toEqual({ reason: "unreadable", line: 2 });
    expect(await details("jsonl", '{"a":\n')).toEqual({ reason: "unreadable", line: 1 });
    expect(await details("jsonl", `{"a":"${"x".repeat(100_001)}"}\n`)).toEqual({
      reason: "limit",
      limit: "recordBytes",
      line: 1,
    });
    expect(await details("parquet", "PAR1 no PAR1")).toMatchObject({ reason: "unreadable" });
  });

  test("what PostgreSQL's text has not is told by its column", async () => {
    await writeFile(path.join(folder, "table"), '{"a":{"k":"\\u0000"}}\n');
    const columns = [{ name: "a", type: "jsonb" as const }];
    const task = {
      kind: "toCsv",
      input: "table",
      format: "jsonl",
      output: "out.csv",
      columns,
      limits: LIMITS,
    } as const;
    expect((await failure(run(task))).detail).toEqual({ reason: "unrepresentable", column: "a", line: 1 });
    await writeFile(path.join(folder, "table"), '{"a":{"k":"\\\\u0000"}}\n');
    expect(await run(task)).toEqual({ rows: 1 });
  });
});
