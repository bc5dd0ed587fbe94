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

const HOURS = 0.5;

/** Lives through a world whose database does what a careless statement would do; returns what was not true of it. */
async function failureWith(
  { table, before, fault }: { table: string; before: "insert" | "update"; fault: string },
  seed: number,
  listen?: (line: string) => void,
): Promise<SimulationFailure> {
  await under.db.sql(`create function compute.fault() returns trigger language plpgsql as $$ begin ${fault} end $$`);
  try {
    await under.db.sql(
      `create trigger fault before ${before} on ${table} for each row execute function compute.fault()`,
    );
    const error = await simulateExactly({ database, seed, durationMs: HOURS * 3_600_000, listen }).catch((e) => e);
    expect(error).toBeInstanceOf(SimulationFailure);
    return error;
  } finally {
    await under.db.sql("drop function compute.fault cascade");
  }
}

test("a world in which money appears from nowhere fails, and tells its seed, the command and what happened last", async () => {
  const fault = `
    if new.held_micros > old.held_micros then new.balance_micros := new.balance_micros + 1; end if;
    return new;`;
  const lines: string[] = [];
  const listen = (line: string) => void lines.push(line);
  const { message } = await failureWith({ table: "compute.account", before: "update", fault }, 5, listen);
  expect(message).toContain(`nodus sim --seed 5 --hours ${HOURS}`);
  expect(message).toContain("not true: credits are what the books say");
  expect(message.split("\n").at(-1)).toMatch(/^\d\d:\d\d:\d\d\.\d{3}\t/);
  expect(lines.length).toBeGreaterThan(100);
}, 120_000);

test("a world fails in which leases are held to be over a minute before their hosts end what they run", async () => {
  const fault = `
    if new.lease_expires_at > old.lease_expires_at then
      new.lease_expires_at := new.lease_expires_at - interval '60 seconds';
    end if;
    return new;`;
  const { message } = await failureWith({ table: "compute.placement", before: "update", fault }, 4);
  expect(message).toContain("not true: a stage's command runs once at most");
}, 120_000);

test("a world fails in which records are acknowledged that were not written down", async () => {
  const fault = "new.applied_seq := least(new.applied_seq, old.applied_seq); return new;";
  const { message } = await failureWith({ table: "compute.placement", before: "update", fault }, 5);
  expect(message).toContain("not true: what was acknowledged is written down");
}, 120_000);

test("a world fails in which nobody is sent for to settle what is over", async () => {
  const fault = "if new.job = 'compute.settlePlacement' then return null; end if; return new;";
  const { message } = await failureWith({ table: "infra.outbox", before: "insert", fault }, 5);
  expect(message).toContain("not true: what is due is not left lying: settle ");
}, 120_000);
