import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ExportFixture, exportFixture } from "../../tests/support/export-fixture.ts";

/** Every type, by its name: what it becomes in Parquet, and values of it as SQL text; `null` is tried with each. */
const TYPES: Record<string, { parquet: string; values: fc.Arbitrary<string> }> = {};
const type = (name: string, parquet: string, ...values: (fc.Arbitrary<string> | string)[]) => {
  TYPES[name] = { parquet, values: fc.oneof(...values.map((v) => (typeof v === "string" ? fc.constant(v) : v))) };
};
const digits = (value: fc.Arbitrary<number | bigint>) => value.map(String);
const text = fc
  .oneof(
    fc.string({ unit: "binary" }),
    fc.string(),
    fc.constantFrom("", "\\N", "\\.", '"', "NULL", "\r", "\n", "\r\n,", "'", "\\"),
  )
  .map((t) => t.toWellFormed().replaceAll("\0", "0"));

type("int2", "SMALLINT", digits(fc.integer({ min: -32768, max: 32767 })));
type("int4", "INTEGER", digits(fc.integer()));
type("int8", "BIGINT", digits(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })));
type("float4", "FLOAT", digits(fc.float({ noNaN: true })), "NaN", "Infinity", "-Infinity", "-0");
type("float8", "DOUBLE", digits(fc.double({ noNaN: true })), "NaN", "Infinity", "-Infinity", "-0", "5e-324");
type("bool", "BOOLEAN", "true", "false");
type("text", "VARCHAR", text);
type(
  "varchar(40)",
  "VARCHAR",
  text.map((t) => [...t].slice(0, 40).join("")),
);
type("char(5)", "VARCHAR", "ab", "", "é");
type("name", "VARCHAR", "a name");
type('"char"', "VARCHAR", "x");
type(
  "numeric",
  "VARCHAR",
  "1.50",
  "-0.000000000000000000000000000001",
  "99999999999999999999999999999999999999999.1",
  "NaN",
  "Infinity",
  "1e400",
);
type("numeric(10,2)", "VARCHAR", "1.5", "-12345678.99");
type("money", "VARCHAR", "12.34");
type(
  "json",
  "JSON",
  '{"a": 1.10,  "a": 2}',
  "null",
  '"\\u00e9"',
  "[1e400, 123456789012345678901234567890.5]",
  fc.json(),
);
type(
  "jsonb",
  "JSON",
  '{"a": 1.10, "b": [null, "x\\n\\"y\\""]}',
  "null",
  fc.json().map((j) => j.replaceAll("\\u0000", "0")),
);
type(
  "timestamptz",
  "TIMESTAMP WITH TIME ZONE",
  "2020-02-29 12:34:56.123456+05:30",
  "0044-03-15 12:00:00+00 BC",
  "4713-01-01 00:00:00+00 BC",
  "0001-01-01 00:00:00+00",
  "294246-12-31 23:59:59.999999+00",
  "1969-12-31 23:59:59.999999+00",
);
type(
  "timestamp",
  "TIMESTAMP",
  "2020-02-29 12:34:56.123456",
  "0044-03-15 12:00:00 BC",
  "294246-12-31 23:59:59.999999",
  "1582-10-10 00:00:00",
);
type("date", "VARCHAR", "2020-02-29", "0044-03-15 BC", "infinity", "-infinity", "5874897-12-31");
type("time", "VARCHAR", "24:00:00", "12:34:56.123456");
type("timetz", "VARCHAR", "12:34:56.1+05:30");
type("interval", "VARCHAR", "1 year 2 mons -3 days 04:05:06.789", "-1 mons");
type("uuid", "VARCHAR", fc.uuid());
type(
  "bytea",
  "VARCHAR",
  fc.uint8Array({ maxLength: 20 }).map((b) => `\\x${Buffer.from(b).toString("hex")}`),
);
type("int4[]", "VARCHAR", "{1,NULL,3}", "{}", "{{1,2},{3,4}}");
type("text[]", "VARCHAR", '{"a,\\"b\\"",NULL,"NULL",""}');
type("inet", "VARCHAR", "10.0.0.1/8", "::1");
type("cidr", "VARCHAR", "10.0.0.0/8");
type("macaddr", "VARCHAR", "08:00:2b:01:02:03");
type("bit(3)", "VARCHAR", "101");
type("varbit", "VARCHAR", "10", "");
type("point", "VARCHAR", "(1.5,-2)");
type("int4range", "VARCHAR", "[1,5)", "empty", "(,)");
type("tsvector", "VARCHAR", "'a':1 'b':2");
type("xml", "VARCHAR", "<a>b</a>");
type("oid", "VARCHAR", "4294967295");
type("pg_lsn", "VARCHAR", "16/B374D848");
type("regclass", "VARCHAR", "pg_class");
type("public.mood", "VARCHAR", "happy", "so, so");
type("public.pair", "VARCHAR", '(1,"a ""b""")');
type("public.positive", "INTEGER", "7");

const names = Object.keys(TYPES);

let f: ExportFixture;
let reader: DuckDBConnection;
beforeAll(async () => {
  f = await exportFixture();
  await f.customer((client) =>
    client.query(`create type public.mood as enum ('happy', 'so, so');
      create type public.pair as (a int, b text);
      create domain public.positive as int check (value > 0);
      create table public.sample (n int, ${names.map((name, i) => `c${i} ${name}`).join(", ")});
      grant select on public.sample to customer`),
  );
  reader = await (await DuckDBInstance.create(":memory:", { threads: "1", memory_limit: "200MB" })).connect();
  await reader.run("set TimeZone = 'UTC'");
}, 60_000);
afterAll(() => f?.close());

const row = fc.tuple(...names.map((name) => fc.option(TYPES[name]!.values, { freq: 8 })));

/** The values as PostgreSQL writes them, and the file's bytes, of one table with these rows. */
async function exported(rows: (string | null)[][], format: string) {
  const given = await f.customer(async (client) => {
    await client.query("truncate public.sample");
    const columns = names.map((name, i) => `($2::text[])[${i + 1}]::${name}`);
    for (const [n, values] of rows.entries())
      await client.query(`insert into public.sample select $1, ${columns.join(", ")}`, [n, values]);
    await client.query(
      "set TimeZone = 'UTC'; set extra_float_digits = 1; set IntervalStyle = postgres; set DateStyle = ISO",
    );
    const texts = names.map((_, i) => `c${i}::text as c${i}`);
    const { rows: all } = await client.query({
      text: `select ${texts.join(", ")} from public.sample order by n`,
      rowMode: "array",
    });
    return all as (string | null)[][];
  });
  const actor = f.actor();
  const { id } = await f.connection(actor);
  const sql = `select ${names.map((_, i) => `c${i}`).join(", ")} from public.sample order by n`;
  const asset = await f.exported(actor, { connectionId: id, sql, format });
  expect(asset).toMatchObject({ state: "ready", error: null });
  const file = path.join(f.folder, `types.${format}`);
  await writeFile(file, await f.bytesOf(asset));
  return { given, file };
}

/** CSV as a reader that knows nothing of us reads it: records of fields, null where nothing stands between two commas. */
function readCsv(text: string): (string | null)[][] {
  const records: (string | null)[][] = [];
  let record: (string | null)[] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n)/gy;
  for (const [, quoted, plain, end] of text.matchAll(field)) {
    record.push(quoted?.replaceAll('""', '"') ?? (plain === "" ? null : plain!));
    if (end === ",") continue;
    records.push(record);
    record = [];
  }
  return records;
}

test("every type is typed as documented, and any value of it is read back from Parquet as it was", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 8 }), async (rows) => {
      const { given, file } = await exported(rows as (string | null)[][], "parquet");
      const described = (await reader.runAndReadAll(`describe select * from '${file}'`)).getRowsJson();
      expect(described.map(([, engineType], i) => [names[i], engineType])).toEqual(
        names.map((name) => [name, TYPES[name]!.parquet]),
      );
      // PostgreSQL says whether the text of the value that was read is the value that was written.
      const read = (
        await reader.runAndReadAll(
          `select ${names.map((name, i) => asPostgresText(name, i)).join(", ")} from '${file}'`,
        )
      ).getRowsJson();
      const back = await sameText(read as (string | null)[][]);
      expect(back).toEqual(given);
    }),
    { numRuns: 6, endOnFailure: true },
  );
}, 120_000);

/** The read value in a spelling that PostgreSQL takes. */
function asPostgresText(name: string, i: number): string {
  if (!name.startsWith("timestamp")) return `cast(c${i} as varchar)`;
  // The reader rounds instants of far years when it prints them.
  const column = name === "timestamptz" ? `cast(make_timestamp(epoch_us(c${i})) as varchar)` : `cast(c${i} as varchar)`;
  const zone = name === "timestamptz" ? "+00" : "";
  return `case when contains(${column}, '(BC)') then replace(${column}, ' (BC)', '') || '${zone} BC' else ${column} || '${zone}' end`;
}

/** What PostgreSQL writes for the values that these texts stand for. */
async function sameText(rows: (string | null)[][]): Promise<(string | null)[][]> {
  return f.customer(async (client) => {
    await client.query(
      "set TimeZone = 'UTC'; set extra_float_digits = 1; set IntervalStyle = postgres; set DateStyle = ISO",
    );
    const columns = names.map((name, i) => `($1::text[])[${i + 1}]::${name}::text as c${i}`);
    const back: (string | null)[][] = [];
    for (const values of rows) {
      const { rows: one } = await client.query({
        text: `select ${columns.join(", ")}`,
        values: [values],
        rowMode: "array",
      });
      back.push(one[0] as (string | null)[]);
    }
    return back;
  });
}

test("CSV holds every value as PostgreSQL writes it, NULL as nothing and an empty text in quotes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 8 }), async (rows) => {
      const { given, file } = await exported(rows as (string | null)[][], "csv");
      const [header, ...records] = readCsv(await readFile(file, "utf8"));
      expect(header).toEqual(names.map((_, i) => `c${i}`));
      expect(await sameText(records)).toEqual(given);
    }),
    { numRuns: 6, endOnFailure: true },
  );
}, 120_000);

test.each(["infinity", "-infinity", "294276-12-31 23:59:59"])(
  "the timestamp %s, which Parquet cannot hold, fails the export by its column and goes into CSV as it is",
  async (value) => {
    const actor = f.actor();
    const { id } = await f.connection(actor);
    const sql = `select 1 as id, timestamp '${value}' as until`;
    const failed = await f.exported(actor, { connectionId: id, sql, format: "parquet" });
    expect(failed).toMatchObject({ state: "failed", error: "query_failed" });
    expect(failed.errorMessage).toBe(
      'Column "until" has a timestamp that Parquet cannot hold, such as infinity. Cast it to text.',
    );
    const csv = await f.exported(actor, { connectionId: id, sql, format: "csv" });
    expect((await f.bytesOf(csv)).toString()).toBe(`id,until\n1,${value}\n`);
  },
);
