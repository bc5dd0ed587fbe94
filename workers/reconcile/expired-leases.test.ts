import { afterEach, expect, test } from "vitest";
import { OutboxRow } from "../../infra/db/outbox.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { computeEntities } from "../../subgraphs/compute/entities.ts";
import { beat } from "../../subgraphs/compute/lifecycle/session.commands.ts";
import { Placement } from "../../subgraphs/compute/placement/placement.entity.ts";
import { computeSettings, insertAccount, insertPlaced } from "../../tests/support/compute-fixtures.ts";
import { type TestDatabase, testDatabase } from "../../tests/support/database.ts";
import { lifecycleDeps, MiniatureHost } from "../../tests/support/miniature-host.ts";
import { leaseReconciler } from "./expired-leases.ts";
import type { Reconciler } from "./schedule.ts";

let database: TestDatabase;
afterEach(() => database.close());

const HOUR_MS = 3_600_000;

/** A host that runs its command, and the reconciler of a process that has been up for long. */
async function runningHost() {
  database = await testDatabase([...computeEntities, OutboxRow]);
  const { db } = database;
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  const deps = lifecycleDeps(db, clock);
  const started = () => leaseReconciler({ db, clock, settings: computeSettings });
  const longUp = started();
  await clock.advance(HOUR_MS);
  await insertAccount(db, clock.now());
  const placed = await insertPlaced(db, clock.now());
  const host = await MiniatureHost.open(deps, placed);
  await host.apply(host.running());
  const roundOf = (reconciler: Reconciler) => async () => {
    await clock.advance(reconciler.everyMs);
    await reconciler.run(new AbortController().signal, null);
    return (await db.row(Placement, "where t.id = $1", [placed.placementId]))!.state;
  };
  const restarted = () => ({ round: roundOf(started()) });
  return { clock, round: roundOf(longUp), restarted, beat: () => beat(deps, host.session) };
}

test("a host that is silent for a whole lease loses its generation", async () => {
  const { clock, round } = await runningHost();
  expect(await round()).toBe("running");
  await clock.advance(computeSettings.leaseMs);
  expect(await round()).toBe("ended");
});

test("a wall clock that is set an hour ahead ends nobody who is heard within a lease", async () => {
  const { clock, round, beat } = await runningHost();
  await round();
  clock.stepWall(HOUR_MS);
  expect([await round(), await round()]).toEqual(["running", "running"]);
  await beat();
  await clock.advance(computeSettings.leaseMs - 5_000);
  await beat();
  expect([await round(), await round(), await round()]).toEqual(["running", "running", "running"]);
});

test("a host that stays silent after the wall clock was set is lost one lease later", async () => {
  const { clock, round } = await runningHost();
  await round();
  clock.stepWall(HOUR_MS);
  expect(await round()).toBe("running");
  await clock.advance(computeSettings.leaseMs);
  expect(await round()).toBe("ended");
});

test("a wall clock that is set an hour back ends nobody who is heard, and puts off no verdict by more than a lease", async () => {
  const { clock, round, beat } = await runningHost();
  await round();
  clock.stepWall(-HOUR_MS);
  expect(await round()).toBe("running");
  await clock.advance(computeSettings.leaseMs - 5_000);
  await beat();
  expect([await round(), await round(), await round()]).toEqual(["running", "running", "running"]);
  clock.stepWall(-HOUR_MS);
  expect(await round()).toBe("running");
  await clock.advance(computeSettings.leaseMs);
  expect(await round()).toBe("ended");
});

test("a process that has just started takes no lease for one from before the wall clock was set back", async () => {
  const { clock, restarted } = await runningHost();
  clock.stepWall(-HOUR_MS);
  const { round } = restarted();
  await clock.advance(20_000);
  expect(await round()).toBe("running");
  await clock.advance(computeSettings.leaseMs);
  expect(await round()).toBe("ended");
});

test("a wall clock that is drawn a little at a time puts off no verdict", async () => {
  const { clock, round } = await runningHost();
  for (let waitedMs = 0; waitedMs < computeSettings.leaseMs; waitedMs += 2_000) {
    clock.stepWall(LIMITS.clockStepMs / 10);
    await round();
  }
  expect(await round()).toBe("ended");
});
