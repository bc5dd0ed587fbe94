import { afterAll, beforeAll, beforeEach } from "vitest";
import type { Database } from "../../infra/db/database.ts";
import { IdempotencyKey } from "../../infra/db/idempotency.ts";
import { OutboxRow } from "../../infra/db/outbox.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { computeEntities } from "../../subgraphs/compute/entities.ts";
import { insertAccount, insertPlaced, type Placed } from "./compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "./database.ts";
import { type FakeLifecycleDeps, lifecycleDeps, MiniatureHost } from "./miniature-host.ts";

/** A new database with all the tables that a workload's life is written in. */
export function lifecycleDatabase(): Promise<TestDatabase> {
  return testDatabase([...computeEntities, OutboxRow, IdempotencyKey]);
}

/**
 * Forgets whatever ran in this database, and begins again on 1 March 2026 with a team that has credits and nothing
 * running. Returns what the commands of its workloads use.
 */
export async function beginAnew(db: Database): Promise<FakeLifecycleDeps> {
  await db.sql(
    `truncate compute.account, compute.workload, compute.stage, compute.placement, compute.attempt, compute.ledger_entry,
       compute.log_chunk, compute.output, compute.manifest, compute.workload_event, compute.unit_observation, infra.outbox`,
  );
  const deps = lifecycleDeps(db, new FakeClock("2026-03-01T00:00:00Z"));
  await insertAccount(db, deps.clock.now());
  return deps;
}

/**
 * What the commands of workloads use, in a database that all tests of the calling file share and in which each of them
 * begins anew.
 */
export function lifeOfEachTest(): FakeLifecycleDeps {
  const deps = {} as FakeLifecycleDeps; // filled before each test
  let database: TestDatabase | null = null;
  beforeAll(async () => {
    database = await lifecycleDatabase();
  });
  beforeEach(async () => {
    Object.assign(deps, await beginAnew(database!.db));
  });
  afterAll(() => database?.close());
  return deps;
}

/** A workload whose order is out, and the host that has taken the order up and not said anything yet. */
export async function insertHosted(
  deps: FakeLifecycleDeps,
  over: Parameters<typeof insertPlaced>[2] = {},
): Promise<{ placed: Placed; host: MiniatureHost }> {
  const placed = await insertPlaced(deps.db, deps.clock.now(), over);
  return { placed, host: await MiniatureHost.open(deps, placed) };
}
