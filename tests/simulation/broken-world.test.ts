import { afterAll, beforeAll, expect, test } from "vitest";
import { allEntities } from "../../roles/entities.ts";
import { SimulationFailure, simulateExactly } from "../../roles/simulation/simulate.ts";
import { SimulationDatabase } from "../../roles/simulation/simulation-database.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let under: TestDatabase;
let database: SimulationDatabase;

beforeAll(async () => {
  under = await testDatabase(allEntities);
  database = await SimulationDatabase.open(under.url);
});
afterAll(async () => {
  await database?.close();
  await under?.close();
});

const HOURS = 0.25;

test("a world in which money appears from nowhere fails, and tells its seed, the command and what happened last", async () => {
  // A fault as a careless command would make it: whoever reserves money gets some.
  await under.db.sql(`create function compute.make_money() returns trigger language plpgsql as $$
    begin
      if new.held_micros > old.held_micros then new.balance_micros := new.balance_micros + 1; end if;
      return new;
    end $$`);
  await under.db.sql(
    "create trigger make_money before update on compute.account for each row execute function compute.make_money()",
  );
  const lines: string[] = [];
  const options = { seed: 5, durationMs: HOURS * 3_600_000, listen: (line: string) => void lines.push(line) };
  const error = await simulateExactly({ database, ...options }).catch((e) => e);
  expect(error).toBeInstanceOf(SimulationFailure);
  expect(error.message).toContain(`nodus sim --seed 5 --hours ${HOURS}`);
  expect(error.message).toContain("not true: credits are what the books say");
  expect(error.message.split("\n").at(-1)).toMatch(/^\d\d:\d\d:\d\d\.\d{3}\t/);
  expect(lines.length).toBeGreaterThan(100);
}, 120_000);
