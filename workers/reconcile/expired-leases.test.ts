import { afterEach, expect, test } from "vitest";
import { OutboxRow } from "../../infra/db/outbox.ts";
import { type Clock, FakeClock } from "../../infra/kernel/clock.ts";
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

/** The clock of another machine, whose time of day is off. */
class SkewedClock implements Clock {
  readonly #clock: Clock;
  readonly #aheadMs: number;

  constructor(clock: Clock, aheadMs: number) {
    this.#clock = clock;
    this.#aheadMs = aheadMs;
  }

  now(): Date {
    return new Date(this.#clock.now().getTime() + this.#aheadMs);
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(ms, signal);
  }
}

/** A host that runs its command, and the reconciler of a process that has been up for long. */
async function runningHost() {
  database = await testDatabase([...computeEntities, OutboxRow]);
  const { db } = database;
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  const deps = lifecycleDeps(db, clock);
  const started = (of: Clock = clock) => leaseReconciler({ db, clock: of, settings: computeSettings });
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
  const roundOn = (of: Clock) => roundOf(started(of));
  return { clock, round: roundOf(longUp), restarted, roundOn, beat: () => beat(deps, host.session) };
}

/** From the last sign of life to the verdict. */
const SILENCE_MS = computeSettings.leaseMs + LIMITS.clockSkewMs;

test("a host that is silent for a whole lease loses its generation, once no machine's clock can say otherwise", async () => {
  const { clock, round } = await runningHost();
  expect(await round()).toBe("running");
  await clock.advance(computeSettings.leaseMs);
  expect(await round()).toBe("running");
  await clock.advance(LIMITS.clockSkewMs);
  expect(await round()).toBe("ended");
});

/** Machines whose wall clocks are off from the one of the machine that gives leases. */
test.each([-HOUR_MS, -LIMITS.clockSkewMs, LIMITS.clockSkewMs])(
  "a machine whose clock is off by %i ms ends no generation whose host is heard now and then",
  async (offMs) => {
    const { clock, roundOn, beat } = await runningHost();
    const elsewhere = roundOn(new SkewedClock(clock, offMs));
    await clock.advance(HOUR_MS);
    await beat();
    for (let n = 0; n < 6; n++) {
      await clock.advance(computeSettings.leaseMs / 2);
      await beat();
      expect(await elsewhere()).toBe("running");
    }
    await clock.advance(computeSettings.leaseMs - 2 * LIMITS.heartbeatIntervalMs);
    expect(await elsewhere()).toBe("running");
    await clock.advance(SILENCE_MS);
    await elsewhere();
    await clock.advance(SILENCE_MS);
    expect(await elsewhere()).toBe("ended");
  },
);

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

test("a process that started after the wall clock was set ahead ends nobody who was heard before, for a lease", async () => {
  const { clock, restarted } = await runningHost();
  clock.stepWall(HOUR_MS);
  const { round } = restarted();
  await clock.advance(computeSettings.leaseMs - 5_000);
  expect(await round()).toBe("running"); // so long may its guest live
  await clock.advance(5_000);
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
