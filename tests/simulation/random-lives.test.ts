import { afterEach, expect, test } from "vitest";
import { brokenInvariants } from "../../roles/simulation/invariants.ts";
import { Account } from "../../subgraphs/compute/account/account.entity.ts";
import { Workload } from "../../subgraphs/compute/workload/workload.entity.ts";
import { type ComputeGraph, computeGraph } from "../support/compute-graph.ts";
import { RandomLife } from "../support/random-life.ts";

/** More seeds: `NODUS_TEST_SEEDS=20 npm test -- tests/simulation`. */
const SEEDS = Number(process.env.NODUS_TEST_SEEDS ?? 2);
const FIRST_SEED = Number(process.env.NODUS_TEST_FIRST_SEED ?? 1);
const seeds = Array.from({ length: SEEDS }, (_, i) => FIRST_SEED + i);

let graph: ComputeGraph;
const open: ComputeGraph[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function begin(seed: number): Promise<RandomLife> {
  graph = await computeGraph({ offerQuarantineMs: 5_000 });
  open.push(graph);
  return RandomLife.begin(graph, seed);
}

async function expectSound(trail: readonly string[]): Promise<void> {
  expect(await brokenInvariants(graph.db), `after ${trail.slice(-12).join(", ")} (step ${trail.length})`).toEqual([]);
}

/** Types of events that the lives so far have seen. */
const seen = new Set<string>();

/** After the end of everything nothing is reserved, nothing owed, and nobody forgotten. */
async function expectAllSettled(): Promise<void> {
  const workloads = await graph.db.rows(Workload, "");
  const types = await graph.db.sql<{ type: string }>("select distinct type from compute.workload_event");
  for (const { type } of types) seen.add(type.replace("workload.", ""));
  expect(workloads.length).toBeGreaterThan(5);
  expect(workloads.filter((w) => w.settledAt === null).map((w) => [w.id, w.status])).toEqual([]);
  expect(await graph.db.rows(Account, "")).toMatchObject([{ heldMicros: 0n, activeRuns: 0 }]);
}

test.each(seeds)(
  "seed %d: whatever happens one after another, money, capacity and states stay sound",
  async (seed) => {
    const life = await begin(seed);
    const trail: string[] = [];
    for (let step = 0; step < 250; step++) {
      const { name, run } = life.next();
      trail.push(name);
      await run();
      await expectSound(trail);
    }
    await life.end();
    await expectSound([...trail, "the end"]);
    await expectAllSettled();
  },
  120_000,
);

test.each(seeds)(
  "seed %d: whatever happens at the same time, money, capacity and states stay sound",
  async (seed) => {
    const life = await begin(seed + 1_000);
    const trail: string[] = [];
    for (let step = 0; step < 80; step++) {
      const together = Array.from({ length: 6 }, () => life.next());
      trail.push(together.map((act) => act.name).join(" + "));
      await Promise.all(together.map((act) => act.run()));
      await expectSound(trail);
    }
    await life.end();
    await expectSound([...trail, "the end"]);
    await expectAllSettled();
  },
  120_000,
);

test("these lives are eventful enough to mean something", () => {
  const types = [
    "running",
    "completed",
    "failed",
    "cancelled",
    "interrupted",
    "recovering",
    "placement_failed",
    "waiting",
  ];
  expect([...seen]).toEqual(expect.arrayContaining([...types, "stage_completed", "resources_released", "settled"]));
});
