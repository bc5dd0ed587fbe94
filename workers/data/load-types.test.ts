import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type GivenOutput, type LoadFixture, loadFixture } from "../../tests/support/load-fixture.ts";
import { parquetOf } from "../../tests/support/parquet-writer.ts";

let fixture: LoadFixture;
beforeAll(async () => {
  fixture = await loadFixture();
}, 60_000);
afterAll(() => fixture?.close());

/** Every run loads many rows: what costs time is the run. */
const RUNS = { numRuns: 3 };
const ROWS = { minLength: 1, maxLength: 60 };

const text = fc
  .oneof(
    fc.string({ unit: "binary" }),
    fc.string(),
    fc.constantFrom("", "\\N", "\\.", '"', '""', "NULL", "null", "\r", "\n", "\r\n,", "a\n\\.\nb", "'", "\\", " ", ","),
  )
  .map((t) => t.toWellFormed().replaceAll("\0", "0"));
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 6 });

let tables = 0;

/** Loads a file into a new table; the values of its rows as the database prints them, and the types of its columns. */
async function loaded(output: Omit<GivenOutput, "table">, columns: readonly string[]) {
  const table = `typed_${++tables}`;
  const { load } = await fixture.loaded({ ...output, table });
  expect(load).toMatchObject({ state: "loaded", error: null });
  return fixture.customer(async (client) => {
    await client.query("set TimeZone = 'UTC'; set IntervalStyle = postgres; set extra_float_digits = 1");
    const quoted = columns.map((name) => client.escapeIdentifier(name));
    const values = quoted.map((name) => `${name}::text`).join(", ");
    const { rows } = await client.query({ text: `select ${values} from ${table} order by n::int`, rowMode: "array" });
    const types = await client.query({
      text: `select ${quoted.map((name) => `pg_typeof(${name})::text`).join(", ")} from ${table} limit 1`,
      rowMode: "array",
    });
    return { rows: rows as (string | null)[][], types: types.rows[0] as string[] };
  });
}

test("any CSV comes out as the texts that are in it, an empty field as NULL", async () => {
  const field = (value: string | null) => (value === null ? "" : `"${value.replaceAll('"', '""')}"`);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(maybe(text), maybe(text)), ROWS), async (given) => {
      const lines = given.map(([a, b], n) => `${n},${field(a)},${field(b)}\n`);
      const { rows, types } = await loaded({ path: "t.csv", content: `N,A,b c\n${lines.join("")}` }, ["n", "a", "b c"]);
      expect(rows).toEqual(given.map(([a, b], n) => [String(n), a, b]));
      expect(types).toEqual(["text", "text", "text"]);
    }),
    RUNS,
  );
}, 60_000);

test("any JSON lines come out as they are, a number with each of its digits", async () => {
  const number = fc.oneof(
    fc.integer().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (Object.is(n, -0) ? "0" : JSON.stringify(n))),
    fc.constantFrom("123456789012345678901234567890.5", "1.50", "1e-30"),
  );
  const nested = fc.oneof(fc.array(text), fc.dictionary(text, fc.oneof(text, fc.boolean(), fc.constant(null))));
  const record = fc.tuple(maybe(text), maybe(fc.boolean()), maybe(number), maybe(nested));
  await fc.assert(
    fc.asyncProperty(fc.array(record, ROWS), async (given) => {
      const all: typeof given = [...given, ["x", true, "1", {}]]; // so that each column has its type
      const lines = all.map(([t, b, m, o], n) => {
        return `{"n":${n},"T":${JSON.stringify(t)},"b":${b},"m":${m},"o":${JSON.stringify(o)}}\n`;
      });
      const { rows, types } = await loaded({ path: "t.ndjson", content: lines.join("") }, ["n", "t", "b", "m", "o"]);
      expect(types).toEqual(["numeric", "text", "boolean", "numeric", "jsonb"]);
      const numerics = await canonical(
        "numeric",
        all.map(([, , m]) => m),
      );
      const documents = await canonical(
        "jsonb",
        all.map(([, , , o]) => (o === null ? null : JSON.stringify(o))),
      );
      expect(rows).toEqual(
        all.map(([t, b], n) => [String(n), t, b === null ? null : String(b), numerics[n], documents[n]]),
      );
    }),
    RUNS,
  );
}, 60_000);

/** Values as the database itself prints them. */
async function canonical(type: string, values: (string | null)[]): Promise<(string | null)[]> {
  const rows = await fixture.rows(
    `select v::${type}::text as v from unnest($1::text[]) with ordinality as u(v, i) order by i`,
    [values],
  );
  return rows.map(({ v }) => v as string | null);
}

const whole = (bits: bigint, signed = true) =>
  (signed
    ? fc.bigInt({ min: -(2n ** (bits - 1n)), max: 2n ** (bits - 1n) - 1n })
    : fc.bigInt({ min: 0n, max: 2n ** bits - 1n })
  ).map(String);

/** Every type of a Parquet column: how DuckDB writes it, what it is in the table, and values as DuckDB reads them. */
const PARQUET: readonly [string, string, fc.Arbitrary<string>][] = [
  ["boolean", "boolean", fc.constantFrom("true", "false")],
  ["tinyint", "smallint", whole(8n)],
  ["smallint", "smallint", whole(16n)],
  ["integer", "integer", whole(32n)],
  ["bigint", "bigint", whole(64n)],
  ["utinyint", "bigint", whole(8n, false)],
  ["usmallint", "bigint", whole(16n, false)],
  ["uinteger", "bigint", whole(32n, false)],
  ["ubigint", "numeric", whole(64n, false)],
  ["float", "real", fc.float({ noDefaultInfinity: true, noNaN: true }).map(String)],
  [
    "double",
    "double precision",
    fc.oneof(fc.double({ noNaN: true }).map(String), fc.constantFrom("NaN", "Infinity", "-Infinity")),
  ],
  ["decimal(10, 2)", "numeric", fc.constantFrom("1.50", "-12345678.99", "0.00")],
  ["decimal(38, 10)", "numeric", fc.constantFrom("1234567890123456789012345678.0123456789")],
  ["varchar", "text", text],
  ["blob", "bytea", fc.constantFrom("", "\\x00\\xFF", "abc")],
  ["date", "date", fc.constantFrom("2020-02-29", "1969-12-31", "0044-03-15 (BC)")],
  ["time", "time without time zone", fc.constantFrom("12:34:56.123456", "00:00:00")],
  ["timestamp", "timestamp without time zone", fc.constantFrom("2020-02-29 12:34:56.123456", "1582-10-10 00:00:00")],
  [
    "timestamptz",
    "timestamp with time zone",
    fc.constantFrom("2020-02-29 12:34:56.123456+00", "1969-12-31 23:59:59+00"),
  ],
  ["uuid", "uuid", fc.uuid()],
  ["json", "jsonb", fc.json().filter((j) => !j.includes("\\u0000") && !/\\ud[89a-f]/i.test(j))],
];

/** How a value is written for the database, where that is not how it is written for DuckDB. */
function forDatabase(type: string, value: string): string {
  if (type === "bytea")
    return `\\x${Buffer.from(value === "\\x00\\xFF" ? [0, 255] : [...Buffer.from(value)]).toString("hex")}`;
  return value.replace(/^([0-9-]+) \(BC\)$/, "$1 BC");
}

test("each type of Parquet gets a type that holds all of its values", async () => {
  const record = fc.tuple(...PARQUET.map(([, , values]) => maybe(values)));
  const literal = (value: string | null, type: string) =>
    value === null ? `null::${type}` : `'${value.replaceAll("'", "''")}'::${type}`;
  await fc.assert(
    fc.asyncProperty(fc.array(record, { ...ROWS, maxLength: 20 }), async (given) => {
      const selects = given.map((values, n) => {
        const columns = values.map((value, i) => `${literal(value, PARQUET[i]![0])} as c${i}`);
        return `select ${n} as n, ${columns.join(", ")}`;
      });
      const names = PARQUET.map((_, i) => `c${i}`);
      const content = await parquetOf(selects.join(" union all "));
      const { rows, types } = await loaded({ path: "t.parquet", content }, ["n", ...names]);
      expect(types.slice(1)).toEqual(PARQUET.map(([, type]) => type));
      for (const [i, [engine, type]] of PARQUET.entries()) {
        const values = given.map((row) => row[i] ?? null);
        const expected = await canonical(
          type,
          values.map((v) => (v === null ? null : forDatabase(type, v))),
        );
        expect([engine, rows.map((row) => row[i + 1])]).toEqual([engine, expected]);
      }
    }),
    RUNS,
  );
}, 90_000);
