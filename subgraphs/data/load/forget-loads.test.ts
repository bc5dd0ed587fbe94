import { afterAll, beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { type LoadFixture, loadFixture } from "../../../tests/support/load-fixture.ts";
import { expireResults } from "../../compute/output/expire-results.ts";
import { forgetPlacements } from "../../compute/placement/forget-placements.ts";
import { forgetLoads } from "./forget-loads.ts";

let f: LoadFixture;
beforeAll(async () => {
  f = await loadFixture();
}, 60_000);
afterAll(() => f?.close());

const output = (table: string) => ({ path: "o.csv", content: "id\n1\n", table });
const page = (limit = 10, after: string | null = null) =>
  forgetLoads({ db: f.db, results: f.deps.results }, { after, limit, now: f.clock.now() });
const isKnown = async ({ id }: { id: string }) =>
  (await f.db.sql("select 1 from data.sink_load where id = $1", [id])).length === 1;

/** What retention does of workloads, as if the first of these had been wanted for `resultsMs`. */
async function forgetWorkloads(resultsMs: number): Promise<void> {
  const now = f.clock.now();
  await expireResults(f.db, { now, keptMs: resultsMs, limit: 100 });
  await forgetPlacements(f.db, { now, keptMs: LIMITS.placementHistoryMs, limit: 100 });
}

test("loads are forgotten with the places of their runs, and what was loaded stays fenced in its table", async () => {
  const { run, load } = await f.loaded(output("kept"));
  const failed = await f.loaded({ path: "o.txt", content: "x", table: "never" });
  const unsettled = await f.loaded(output("unsettled"));
  for (const one of [run, failed.run]) await one.settle();
  await f.recordRun(load);
  await f.clock.advance(LIMITS.placementHistoryMs + 1);
  const young = await f.loaded(output("young"));

  expect(await page()).toEqual({ after: null, forgotten: 0 }); // the results are kept for longer here
  await forgetWorkloads(LIMITS.placementHistoryMs);
  expect(await page()).toEqual({ after: null, forgotten: 2 });
  expect(await Promise.all([load, failed.load, unsettled.load, young.load].map(isKnown))).toEqual([
    ...[false, false], // those that are over
    ...[true, true],
  ]);
  await expect(f.reload(run.workloadId, "o")).rejects.toMatchObject({ kind: { code: "output_gone" } });
  expect(await f.rows("select id from kept")).toEqual([{ id: "1" }]);
  const runs = "select generation from nodus_runs where workload_id = $1";
  expect(await f.rows(runs, [run.workloadId])).toEqual([{ generation: 1 }]);
  expect(await page()).toEqual({ after: null, forgotten: 0 });
}, 30_000);

test("a round looks at some loads, goes on behind them, and begins anew where they are young", async () => {
  const made = [await f.loaded(output("a")), await f.loaded(output("b"))];
  for (const { run, load } of made) {
    await run.settle();
    await f.recordRun(load);
  }
  await f.clock.advance(LIMITS.placementHistoryMs + 1);
  await forgetWorkloads(0);
  await f.loaded(output("c"));
  let rounds = 0;
  let forgotten = 0;
  for (let after: string | null = null; rounds === 0 || after !== null; rounds++) {
    const looked = await page(1, after);
    after = looked.after;
    forgotten += looked.forgotten;
  }
  expect([rounds, forgotten]).toEqual([5, 2]); // two are left of before, and the last is young
}, 30_000);

test("a load whose run's last figures are still to be written is not forgotten", async () => {
  const { run, load } = await f.loaded(output("due"));
  await run.settle();
  await f.clock.advance(LIMITS.placementHistoryMs + 1);
  await forgetWorkloads(0);
  expect((await f.loadOf(run)).runState).toBe("due");
  await page();
  expect(await isKnown(load)).toBe(true);
}, 30_000);

test("a load that somebody holds is left for another round, and keeps no other from being forgotten", async () => {
  const made = [await f.loaded(output("held")), await f.loaded(output("free"))];
  for (const { run, load } of made) {
    await run.settle();
    await f.recordRun(load);
  }
  await f.clock.advance(LIMITS.placementHistoryMs + 1);
  await forgetWorkloads(0);
  const known = () => Promise.all(made.map(({ load }) => isKnown(load)));
  await f.db.command(async (tx) => {
    await tx.sql("select 1 from data.sink_load where id = $1 for update", [made[0]!.load.id]);
    await page(100);
    expect(await known()).toEqual([true, false]);
  });
  await page(100);
  expect(await known()).toEqual([false, false]);
}, 30_000);
