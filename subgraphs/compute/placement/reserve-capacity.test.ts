import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Database, Tx } from "../../../infra/db/database.ts";
import { type TestDatabase, testDatabase } from "../../../tests/support/database.ts";
import { computeEntities } from "../entities.ts";
import type { RankedOffer } from "../offer/match-offers.ts";
import { Capacity } from "../offer/offer.entity.ts";
import { reserve, type Seeker } from "./reserve-capacity.ts";

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await testDatabase(computeEntities);
  db = database.db;
});
afterAll(() => database.close());
beforeEach(async () => {
  await db.sql("truncate compute.capacity");
  await db.sql(
    `insert into compute.capacity (id, supplier, cpu_millis, memory_mb, gpus, slots, cpu_millis_used, memory_mb_used,
       gpus_used, slots_used, seen_at)
     select id, 's', 1000, 1024, 0, 1, 0, 0, 0, 0, $1 from unnest(array['a', 'b', 'c', 'd']) as id`,
    [new Date(0)],
  );
});

function seeker(...capacityIds: string[]): Seeker {
  const need = { cpuMillis: 100, memoryMb: 128, gpus: 0 };
  const ranked = capacityIds.map((capacityId) => ({ offer: { capacityId }, need }) as RankedOffer);
  return { ranked, likeness: capacityIds.join(), chosen: null, heldUpBy: null };
}

const chosenBy = (seekers: readonly Seeker[]) => seekers.map((s) => s.chosen?.offer.capacityId ?? null);
const take = (tx: Tx, id: string) =>
  tx.sql("update compute.capacity set slots_used = slots_used + 1 where id = $1", [id]);

/** Resolves when somebody waits for a row. */
async function somebodyWaits(): Promise<void> {
  for (;;) {
    const waiting = await db.sql(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    if (waiting.length > 0) return;
    await setTimeout(5);
  }
}

test("seekers that come too late choose again", async () => {
  const seekers = [seeker("b", "c"), seeker("b", "c"), seeker("b", "c")];
  await db.command((tx) => reserve(tx, seekers));
  expect(chosenBy(seekers)).toEqual(["b", "c", null]);
  expect((await db.rows(Capacity, "order by t.id")).map((c) => c.slotsUsed)).toEqual([0, 1, 1, 0]);
});

test("a lone seeker gets its best candidate, the next one when that is full, and nothing when all are", async () => {
  const alone = async () => {
    const one = seeker("b", "c");
    await db.command((tx) => reserve(tx, [one]));
    return chosenBy([one])[0];
  };
  expect([await alone(), await alone(), await alone()]).toEqual(["b", "c", null]);
  expect((await db.rows(Capacity, "order by t.id")).map((c) => c.slotsUsed)).toEqual([0, 1, 1, 0]);
});

test("a second choice is not waited for when another claim holds it and may be waiting for the first one", async () => {
  const seekers = [seeker("b"), seeker("c", "a", "d")];
  let runs = 0;
  let claimed: Promise<void> | undefined;
  await db.command(async (tx) => {
    await take(tx, "c"); // seen as free by the claim, which takes b and then waits for c
    await take(tx, "a");
    claimed = db.command((other) => {
      runs++;
      return reserve(other, seekers);
    });
    await somebodyWaits();
  });
  // Here c is gone, a too; what is left comes after what the claim holds.
  await claimed;
  expect(chosenBy(seekers)).toEqual(["b", "d"]);
  expect(runs).toBe(1);
});

test("two claims that want each other's capacity second both come to their end at the first try", async () => {
  const mine = [seeker("b"), seeker("c", "a", "d")];
  let runs = 0;
  const taken = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const third = db.command(async (tx) => {
    await take(tx, "c");
    taken.resolve();
    await somebodyWaits(); // the claim, for c
    held.resolve();
  });
  await taken.promise;
  const claim = db.command((tx) => {
    runs++;
    return reserve(tx, mine);
  });
  const other = db.command(async (tx) => {
    await take(tx, "a");
    await held.promise;
    await tx.sql("select 1 from compute.capacity where id = 'b' for update"); // in order: what comes after a
  });
  await Promise.all([third, claim, other]);
  expect({ chosen: chosenBy(mine), runs }).toEqual({ chosen: ["b", "d"], runs: 1 });
});

test("who gets nothing because somebody holds a capacity is told which, unless that is full as well", async () => {
  const [wantsHeld, wantsFull, wantsBoth] = [seeker("b"), seeker("c"), seeker("c", "b")];
  await db.sql("update compute.capacity set slots_used = slots where id = 'c'");
  const reserved = (passOver: boolean) =>
    db.command((tx) => reserve(tx, [wantsHeld, wantsFull, wantsBoth], { passOver }));
  await db.command(async (tx) => {
    await take(tx, "b");
    await tx.sql("select 1 from compute.capacity where id = 'c' for update");
    await reserved(true);
  });
  expect(chosenBy([wantsHeld, wantsFull, wantsBoth])).toEqual([null, null, null]);
  expect(wantsHeld.heldUpBy).toMatchObject({ id: "b", holder: expect.stringMatching(/^[1-9][0-9]*$/) });
  expect(wantsBoth.heldUpBy).toEqual(wantsHeld.heldUpBy);
  expect(wantsFull.heldUpBy).toBeNull();
});
