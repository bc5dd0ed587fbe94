import { afterAll, beforeAll, expect, test } from "vitest";
import { allEntities } from "../../roles/entities.ts";
import { type Simulated, simulateExactly } from "../../roles/simulation/simulate.ts";
import { SimulationDatabase } from "../../roles/simulation/simulation-database.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

/** With the time that everything then takes to come to its end, about an hour. */
const DURATION_MS = 30 * 60_000;
const SEEDS = Array.from({ length: 20 }, (_, i) => i + 1);

let under: TestDatabase;
let database: SimulationDatabase;
const lived: Simulated[] = [];

beforeAll(async () => {
  under = await testDatabase(allEntities);
  database = new SimulationDatabase(under.db);
});
afterAll(() => under?.close());

test.each(SEEDS)(
  "seed %d: whatever goes wrong for an hour, nothing is lost, doubled, oversold or left running",
  async (seed) => {
    lived.push(await simulateExactly({ database, seed, durationMs: DURATION_MS }));
  },
  300_000,
);

test("a seed gives the same world every time, and another seed another one", async () => {
  const [first, second] = lived;
  const again = await simulateExactly({ database, seed: first!.seed, durationMs: DURATION_MS });
  expect(again).toEqual(first);
  expect(second!.hash).not.toBe(again.hash);
}, 300_000);

test("these worlds are eventful enough to mean something", () => {
  const sum = (of: (s: Simulated) => number) => lived.reduce((total, one) => total + of(one), 0);
  expect(sum((s) => s.workloads)).toBeGreaterThan(200);
  expect(sum((s) => s.looks.full)).toBeGreaterThan(200);
  const events = new Set(lived.flatMap((s) => Object.keys(s.events)));
  const expected = ["interrupted", "recovering", "placement_failed", "waiting", "stage_completed", "settled"];
  expect([...events]).toEqual(expect.arrayContaining(expected.map((type) => `workload.${type}`)));
  const ends = new Set(lived.flatMap((s) => Object.keys(s.ends)));
  const ways = ["completed", "cancelled", "budget_exhausted", "deadline_exceeded", "exit_nonzero"];
  expect([...ends]).toEqual(expect.arrayContaining(ways));
});
