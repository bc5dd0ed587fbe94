import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { csv, type GivenOutput, jsonl, type LoadFixture, loadFixture } from "../../tests/support/load-fixture.ts";
import { parquetOf } from "../../tests/support/parquet-writer.ts";

let fixture: LoadFixture;
beforeAll(async () => {
  fixture = await loadFixture();
}, 60_000);
afterAll(() => fixture?.close());

describe("a load fails, without a value of the file in what is told, as", () => {
  async function wordOf(output: GivenOutput, more = {}, on = fixture.shop): Promise<string | null> {
    const { run, load } = await fixture.loaded(output, more, on);
    expect(load.state).toBe("failed");
    const told = JSON.stringify([load, await fixture.events(run.workloadId)]);
    expect(told).not.toContain("hunter2");
    expect(await fixture.scratch()).toEqual([]);
    expect(await fixture.db.sql("select 1 from data.connection_use where holder_id = $1", [load.id])).toEqual([]);
    return load.error;
  }

  test.each<[string, GivenOutput]>([
    ["another ending", { path: "rows.txt", content: "hunter2", table: "u" }],
    ["a folder", { path: "rows.csv", content: "hunter2", table: "u", isTar: true }],
    ["no header", csv("", "u")],
    ["a ragged row", csv("a,b\n1,hunter2\n3\n", "u")],
    ["names that are one in lower case", csv("Hunter,hunter\n1,2\n", "u")],
    ["rows without columns", jsonl("{}\n{}\n", "u")],
    ["a line that is no object", jsonl("[1]\n", "u")],
    ["no Parquet at all", { path: "x.parquet", content: "hunter2", table: "u" }],
  ])("unsupported_file: %s", async (_, output) => {
    expect(await wordOf(output)).toBe("unsupported_file");
  });

  test("unsupported_file: nested Parquet", async () => {
    const content = await parquetOf("select [1, 2] as a");
    expect(await wordOf({ path: "x.parquet", content, table: "u" })).toBe("unsupported_file");
  });

  test("size_limit: more bytes, rows, columns, longer records or larger row groups than allowed", async () => {
    const limits = { bytes: 1_000_000, rows: 2, columns: 2, recordBytes: 100, rowGroupBytes: 1_000 };
    const word = (output: GivenOutput, changed = {}) => wordOf(output, { limits: { ...limits, ...changed } });
    expect(await word(csv("a\n1\n2\n3\n", "s"))).toBe("size_limit");
    expect(await word(csv("a\n1\n", "s"), { bytes: 3 })).toBe("size_limit");
    expect(await word(csv("a,b,c\n1,2,3\n", "s"))).toBe("size_limit");
    expect(await word(jsonl(`{"a":"${"hunter2".repeat(20)}"}`, "s"))).toBe("size_limit");
    const content = await parquetOf("select i::bigint as i from range(2000) t(i)");
    expect(await word({ path: "x.parquet", content, table: "s" }, { rows: 9_999, recordBytes: 9_999 })).toBe(
      "size_limit",
    );
  });

  test("size_limit: a last record that the engine would pass over in silence", async () => {
    const content = `a\n1\n${"hunter2".repeat(2_600_000)}`;
    expect(await wordOf(csv(content, "s"))).toBe("size_limit");
  });

  test("unsupported_file: a Parquet footer that is none, and a file that ends the process that works on it twice", async () => {
    const footer = Buffer.alloc(5_000, 0x1c);
    const length = Buffer.from(new Uint32Array([footer.length]).buffer);
    const content = Buffer.concat([Buffer.from("PAR1"), footer, length, Buffer.from("PAR1")]);
    expect(await wordOf({ path: "x.parquet", content, table: "u" })).toBe("unsupported_file");
    let started = 0;
    const onChild = (pid: number) => {
      started++;
      process.kill(pid, "SIGSEGV");
    };
    expect(await wordOf(csv("a\nhunter2\n", "u"), { onChild })).toBe("unsupported_file");
    expect(started).toBe(2);
  });

  test("internal: a process that something outside ends, twice; once does no harm", async () => {
    expect(await wordOf(csv("a\n1\n", "k"), { onChild: (pid: number) => process.kill(pid, "SIGKILL") })).toBe(
      "internal",
    );
    let started = 0;
    const onChild = (pid: number) => {
      if (started++ === 0) process.kill(pid, "SIGKILL");
    };
    const { load } = await fixture.loaded(csv("a\n1\n2\n", "k"), { onChild });
    expect([load.state, started]).toEqual(["loaded", 2]);
    expect(await fixture.rows("select a from k order by a")).toEqual([{ a: "1" }, { a: "2" }]);
  });

  test("type_mismatch: columns of other types, values that do not fit, and mixed lines", async () => {
    await fixture.asCustomer(
      "create table narrow (a integer); create table short (a varchar(3)); create table cents (a numeric(9,2))",
    );
    expect(await wordOf(csv("a\nhunter2\n", "narrow"))).toBe("type_mismatch");
    expect(await wordOf(csv("a\nhunter2\n", "short"))).toBe("type_mismatch");
    expect(await wordOf(jsonl('{"a":1.5}', "narrow"))).toBe("type_mismatch");
    expect(await wordOf(jsonl('{"a":1.555}', "cents"))).toBe("type_mismatch");
    expect(await wordOf(jsonl('{"a":1}\n{"a":"hunter2"}', "mixed"))).toBe("type_mismatch");
    expect(await fixture.rows("select * from narrow")).toEqual([]);
  });

  test("table_incompatible: views, columns that lack or are required, and the platform's columns in another type", async () => {
    await fixture.asCustomer(`create view a_view as select 1 as a; create table lacking (b text);
      create table required (a text, b text not null); create table odd (a text, nodus_stage integer)`);
    for (const table of ["a_view", "lacking", "required", "odd"])
      expect([table, await wordOf(csv("a\nhunter2\n", table))]).toEqual([table, "table_incompatible"]);
  });

  test("permission_denied: a login that may not make tables", async () => {
    await fixture.rows("create role reader login password 'reader'");
    const secret = fixture.postgres.secret({ user: "reader", password: "reader" });
    expect(await wordOf(csv("a\n1\n", "forbidden"), {}, await fixture.connection({ secret }))).toBe(
      "permission_denied",
    );
  });

  test("credential_inactive and connection_lost: a login that is refused, and a server that is not there", async () => {
    const wrong = await fixture.connection({ secret: fixture.postgres.secret({ password: "hunter2" }) });
    expect(await wordOf(csv("a\n1\n", "c"), {}, wrong)).toBe("credential_inactive");
    const url = `postgres://a:hunter2@localhost:1/x`;
    const gone = await fixture.connection({ secret: JSON.stringify({ postgres_url: url }) });
    expect(await wordOf(csv("a\n1\n", "c"), {}, gone)).toBe("connection_lost");
  });

  test("internal: bytes that are not in the store", async () => {
    const objects = { open: async () => null };
    expect(await wordOf(csv("a\n1\n", "i"), { objects })).toBe("internal");
  });
});
