import { afterAll, beforeAll, expect, test } from "vitest";
import { allEntities } from "../../roles/entities.ts";
import { sumOf } from "../../roles/simulation/happenings.ts";
import { type Simulated, simulateExactly } from "../../roles/simulation/simulate.ts";
import { SimulationDatabase } from "../../roles/simulation/simulation-database.ts";
import { testDatabase } from "../support/database.ts";

/** Mischief of an hour; the time that everything then takes to come to its end is on top. */
const DURATION_MS = 3_600_000;

const JOBS = [
  "data.deliverWebhook",
  "placeStage",
  "superviseBoot",
  "releaseAttempt",
  "settlePlacement",
  "commitLog",
  "closeWorkload",
  "enforceDeadline",
].map((job) => (job.includes(".") ? job : `compute.${job}`));

/** Most workloads have no deadline. */
const OFTEN = JOBS.filter((job) => job !== "compute.enforceDeadline");

/** What has to come up in the worlds of a file, each at least once. */
const MUST_HAPPEN: Record<string, readonly string[]> = {
  supplier: [
    "launch accepted",
    "launch pending",
    "launch refused: no_capacity",
    "launch lost",
    "launch's answer lost",
    "launch repeated",
    "boot too slow",
    "slower than anybody waits",
    "silent for a while",
    "seen unknown",
    "seen never_seen",
    "seen gone",
    "seen reclaiming",
    "end unknown",
    "end lied about",
    "takes back with notice",
    "takes back without notice",
    "machine gone",
  ],
  "died under": [
    ...JOBS,
    "reconciler of attempts",
    "reconciler of waiting stages",
    "reconciler of webhook deliveries",
    "reconciler of retention",
  ],
  store: [
    "store",
    "remove",
    "slow",
    ...["store", "remove"].flatMap((what) => [`refused to ${what}`, `answer lost to ${what}`]),
    "results ended",
  ],
  queue: ["emptied", "flooded", ...OFTEN.flatMap((job) => [`lost ${job}`, `doubled ${job}`])],
  platform: [
    "process died",
    "clock set forward",
    "clock set back",
    "database lost request",
    "database lost reply",
    "wake-up lost",
  ],
  hosts: ["stream broken", "cut off", "cut off for longer than a lease"],
  receivers: [
    "nothing arrived",
    "refused",
    "refused what it took",
    "too slow",
    "answer lost",
    "took it",
    "took it again",
  ],
  deliveries: ["delivered", "webhook_off"],
  customers: [
    "webhook deleted",
    "asked for a delivery again",
    "submitted again",
    "not answered",
    "credits given",
    "limits changed",
    "refused: budget_exceeded",
  ],
  "cancelled while": ["accepted", "planning", "provisioning", "running", "recovering"],
  "failed orders": ["no_capacity", "boot_timeout", "supplier_lost_it"],
  interruptions: ["host_lost", "reclaim", "runner_lost"],
  waits: ["no_capacity", "no_matching_offer", "offers_quarantined", "supplier_silent", "insufficient_credit"],
};

export interface Living {
  /** Those that were lived through so far. */
  lived: readonly Simulated[];
  simulate(seed: number): Promise<Simulated>;
  /** Lets the database take stock, after which it may go other ways to the same answers. */
  analyze(): Promise<void>;
}

/** A test for each of `count` seeds from `first` on. Seeded ids are one for a process, so no two run at a time in it. */
export function livesOf(first: number, count: number): Living {
  const lived: Simulated[] = [];
  let database: SimulationDatabase;
  let close = async () => {};
  const simulate = (seed: number) => simulateExactly({ database, seed, durationMs: DURATION_MS });
  beforeAll(async () => {
    const under = await testDatabase(allEntities);
    database = await SimulationDatabase.open(under.url);
    close = async () => {
      await database.close();
      await under.close();
    };
  });
  afterAll(() => close());

  test.each(Array.from({ length: count }, (_, i) => first + i))(
    "seed %d: whatever goes wrong for an hour, nothing is lost, doubled, oversold or left running",
    async (seed) => {
      lived.push(await simulate(seed));
    },
    300_000,
  );

  test("these worlds are eventful enough to mean something, and were looked at after what happened", () => {
    const sum = (of: (s: Simulated) => number) => lived.reduce((total, one) => total + of(one), 0);
    expect(sum((s) => s.workloads)).toBeGreaterThan(25 * count);
    expect(sum((s) => s.looks.near)).toBeGreaterThan(500 * count);
    expect(sum((s) => s.looks.full)).toBeGreaterThan(2 * count);
    const events = new Set(lived.flatMap((s) => Object.keys(s.events)));
    const expected = ["interrupted", "recovering", "placement_failed", "waiting", "stage_completed", "settled"];
    expect([...events]).toEqual(expect.arrayContaining(expected.map((type) => `workload.${type}`)));
    const ends = new Set(lived.flatMap((s) => Object.keys(s.ends)));
    const ways = ["completed", "cancelled", "budget_exhausted", "deadline_exceeded", "exit_nonzero"];
    expect([...ends]).toEqual(expect.arrayContaining(ways));
  });

  test("all that can go wrong did so in these worlds", () => {
    const happened = sumOf(lived.map((one) => one.happenings));
    for (const [part, expected] of Object.entries(MUST_HAPPEN))
      expect(Object.keys(happened[part] ?? {}), part).toEqual(expect.arrayContaining([...expected]));
  });
  const analyze = async () => void (await database.db.sql("analyze"));
  return { lived, simulate, analyze };
}
