import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { allEntities } from "../entities.ts";
import { DATA_ALWAYS } from "./data-invariants.ts";
import { ALWAYS, NOT_OVERSOLD } from "./invariants.ts";
import { EVERY_SENTENCE, lookAt, readBy, sentencesOver } from "./looking.ts";
import { addWritten, type Written } from "./written.ts";

const SENTENCES = Object.entries({ ...ALWAYS, ...DATA_ALWAYS });

let under: TestDatabase;

beforeAll(async () => {
  under = await testDatabase(allEntities);
});
afterAll(() => under?.close());

/** A plan's tables, as the database itself names them. */
function tablesOf(plan: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(plan)) for (const one of plan) tablesOf(one, found);
  else if (plan && typeof plan === "object") {
    const { Schema: schema, "Relation Name": name } = plan as Record<string, unknown>;
    if (name) found.add(`${schema}.${name}`);
    for (const child of Object.values(plan)) tablesOf(child, found);
  }
  return found;
}

function over(...texts: string[]): string[] {
  const written: Written = new Map();
  for (const text of texts) addWritten(written, text);
  return sentencesOver(written);
}

test("the tables that a sentence's text names are those that the database reads for it", async () => {
  for (const [sentence, text] of SENTENCES) {
    const plan = await under.db.sql(`explain (verbose, format json) ${text}`);
    expect([...readBy(text).tables].toSorted(), sentence).toEqual([...tablesOf(plan)].toSorted());
  }
});

test("no sentence reads columns without naming them", () => {
  for (const [sentence, text] of SENTENCES)
    expect(text.replace(/select \* from \(select|count\(\*\)/g, ""), sentence).not.toMatch(/\*\s+from|\.\*/);
});

test("every sentence is asked after rows of its tables came or went, but for the one that the judge compares", () => {
  for (const [sentence, text] of SENTENCES) {
    if (sentence === NOT_OVERSOLD) continue;
    for (const table of readBy(text).tables)
      expect(over(`insert into ${table} (id) values (1)`), `${sentence} after an insert into ${table}`).toContain(
        sentence,
      );
  }
});

test("a change asks only for the sentences about it", () => {
  const sums = over("update compute.account set held_micros = 0");
  expect(sums).toContain("an account holds what its workloads hold");
  expect(sums).not.toContain("a log is its chunks");
  expect(over("update compute.placement set last_beat_at = $1, lease_expires_at = $2")).toEqual([]);
  expect(over("insert into infra.rate_count (id) values (1)")).toEqual([]);
});

test("every look can be prepared, near and full, and finds nothing in an empty world", async () => {
  for (const of of ["recent", "all"] as const) {
    for (const sentences of [EVERY_SENTENCE, ...EVERY_SENTENCE.map((one) => [one])]) {
      const rows = await under.db.sql<{ row: unknown }>(lookAt(sentences, of), [[], new Date(0), new Date(0)]);
      expect(rows.flatMap(({ row }) => row)).toEqual([]);
    }
  }
});
