import fc from "fast-check";
import { expect, test } from "vitest";
import type { Refused } from "../../../infra/kernel/refusal.ts";
import { checkQuery } from "./check-query.ts";

async function refusal(sql: string): Promise<string> {
  const refused = (await checkQuery(sql).then(
    () => expect.unreachable(`accepted: ${sql}`),
    (error: unknown) => error,
  )) as Refused;
  expect([refused.kind?.code, refused.detail?.field]).toEqual(["invalid_query", "/sql"]);
  return refused.message;
}

test.each([
  "select 1 as a",
  "SELECT * FROM a WHERE b = ';'",
  "with a as (select 1 as x), b as (select x from a) select * from b union all select 2",
  "with recursive t(n) as (values (1) union all select n + 1 from t where n < 9) select n from t",
  "select $$;$$ as a -- and its end",
  "select (select max(insert) from (select 1 as insert) as update) as delete",
  `select "é" from "таблица"`,
])("%s is a query", async (sql) => {
  expect(await checkQuery(sql)).toBe(sql);
});

test("comments before a query and a semicolon after it are not part of it", async () => {
  expect(await checkQuery("/* what */ -- it is\n select $$;$$ as a")).toBe("select $$;$$ as a");
  expect(await checkQuery("  select 'é;' as a ; \n -- end")).toBe("select 'é;' as a ");
  expect(await checkQuery("select 1;;")).toBe("select 1");
});

test.each([
  ["", "There is no query."],
  [" \n", "There is no query."],
  [" ; ", "There is no query."],
  ["-- nothing", "There is no query."],
  ["select 1; select 2", "A second statement begins, line 1, column 11."],
  ["select 1;\n  drop table a", "A second statement begins, line 2, column 3."],
  ["insert into a values (1)", "The query must begin with SELECT or WITH."],
  ["update a set b = 1", "The query must begin with SELECT or WITH."],
  ["values (1)", "The query must begin with SELECT or WITH."],
  ["table a", "The query must begin with SELECT or WITH."],
  ["(select 1)", "The query must begin with SELECT or WITH."],
  ["explain select 1", "The query must begin with SELECT or WITH."],
  ["copy a to '/etc/x'", "The query must begin with SELECT or WITH."],
  ["begin", "The query must begin with SELECT or WITH."],
  ["with a as (select 1) insert into b select * from a", "The query must begin with SELECT or WITH."],
  ["with a as (delete from b returning *) select * from a", "A query that is exported cannot have DELETE."],
  [
    "select * from (with a as (update b set c = 1 returning c) select c from a) d",
    "A query that is exported cannot have UPDATE.",
  ],
  ["with a as (insert into b values (1) returning *) select 1", "A query that is exported cannot have INSERT."],
  [
    "with a as (merge into b using c on true when matched then delete returning *) select 1",
    "A query that is exported cannot have MERGE.",
  ],
  ["select 1 into a", "A query that is exported cannot have SELECT INTO."],
  ["select * from a for update", "A query that is exported cannot have a locking clause such as FOR UPDATE."],
  ["select a from b where c = $1", "A query that is exported cannot have a parameter such as $1, line 1, column 27."],
  ["select\n'é', fromm x y", 'syntax error at or near "y", line 2, column 14.'],
  ["select 'a", 'unterminated quoted string at or near "\'a", line 1, column 8.'],
  ["select 'a\0b'", "The query holds a character that no SQL can."],
])("%j is refused, with what is wrong and where", async (sql, message) => {
  expect(await refusal(sql)).toBe(message);
});

test("a query that is longer than a query may be, or nested more deeply than can be read, is refused and harms nobody", async () => {
  expect(await refusal(`select ${"1,".repeat(30_000)}1`)).toContain("60000 characters");
  expect(await refusal(`select ${"(".repeat(29_000)}1${")".repeat(29_000)}`)).toContain("memory exhausted");
  expect(await refusal(`select ${"1+".repeat(29_000)}1`)).toBe("The query is nested too deeply.");
  expect(await checkQuery("select 1")).toBe("select 1");
});

test("any text is either refused as a query or is one", async () => {
  const word = fc.constantFrom(
    "select",
    "1",
    "'",
    '"',
    "$$",
    ";",
    "--",
    "/*",
    "*/",
    "(",
    ")",
    "with",
    "a",
    ",",
    "\n",
    "delete",
    "from",
    "é",
    "\\",
  );
  await fc.assert(
    fc.asyncProperty(fc.array(word, { maxLength: 14 }), async (words) => {
      const sql = words.join(" ");
      const query = await checkQuery(sql).catch((error: Refused) => {
        expect(error.kind?.code, `${sql}: ${error.message}`).toBe("invalid_query");
        return null;
      });
      if (query !== null) expect(sql).toContain(query);
    }),
    { numRuns: 500 },
  );
});
