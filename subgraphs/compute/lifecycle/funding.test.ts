import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { IdempotencyKey } from "../../../infra/db/idempotency.ts";
import { OutboxRow } from "../../../infra/db/outbox.ts";
import { FakeClock } from "../../../infra/kernel/clock.ts";
import { insertAccount, insertPlaced, TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { lifecycleDeps, MiniatureHost } from "../../../tests/support/miniature-host.ts";
import { Account } from "../account/account.entity.ts";
import { computeEntities } from "../entities.ts";
import { WorkloadEvent } from "../workload/workload-event.entity.ts";
import type { LifecycleDeps } from "./lifecycle-deps.ts";
import { beat } from "./session.commands.ts";

let database: TestDatabase;
let clock: FakeClock;
let deps: LifecycleDeps;

beforeAll(async () => {
  database = await testDatabase([...computeEntities, OutboxRow, IdempotencyKey]);
});
afterAll(() => database.close());
beforeEach(async () => {
  await database.db.sql("truncate compute.account, compute.workload, compute.placement, compute.attempt");
  clock = new FakeClock("2026-03-01T00:00:00Z");
  deps = lifecycleDeps(database.db, clock);
});

async function fundedAfter(host: MiniatureHost, seconds: number): Promise<number> {
  await clock.advance(seconds * 1_000);
  const allowance = await beat(deps, host.session);
  if ("refused" in allowance) throw new Error(allowance.message);
  return allowance.fundedRunMs!;
}

const held = async () => (await deps.db.row(Account, "where t.id = $1", [TENANT]))!.heldMicros;

test.each([1n, 59n, 60n, 3_600n, 100_000n, 98_000_000n])(
  "at %d micros an hour funded time only grows, and never ends before the next beats",
  async (rateMicrosPerHour) => {
    await insertAccount(deps.db, clock.now());
    const placed = await insertPlaced(deps.db, clock.now(), { rateMicrosPerHour, heldMicros: 1n });
    await deps.db.sql("update compute.account set held_micros = 1 where id = $1", [TENANT]);
    const host = await MiniatureHost.open(deps, placed);
    await host.apply(host.running());
    let before = 0;
    for (let second = 5; second <= 400; second += 5) {
      const funded = await fundedAfter(host, 5);
      expect(funded).toBeGreaterThanOrEqual(Math.max(before, second * 1_000 + 10_000));
      before = funded;
    }
  },
);

test("nothing more is reserved, and nobody warned, while results of a command that is over are on their way", async () => {
  await insertAccount(deps.db, clock.now());
  const placed = await insertPlaced(deps.db, clock.now(), { maxCostMicros: 4_000n });
  const host = await MiniatureHost.open(deps, placed);
  await host.apply(host.running(), host.exit({ ranMs: 1_000 }));
  await fundedAfter(host, 80);
  expect(await held()).toBe(1_834n);
  const warnings = await deps.db.rows(
    WorkloadEvent,
    "where t.workload_id = $1 and t.type = 'workload.budget_warning'",
    [placed.workloadId],
  );
  expect(warnings).toEqual([]);
});

test("an empty account extends nothing and takes nothing away", async () => {
  await insertAccount(deps.db, clock.now(), { balanceMicros: 1_834n });
  const placed = await insertPlaced(deps.db, clock.now());
  const host = await MiniatureHost.open(deps, placed);
  await host.apply(host.running());
  const funded = await fundedAfter(host, 5);
  expect(await fundedAfter(host, 50)).toBe(funded);
  expect(await held()).toBe(1_834n);
});
