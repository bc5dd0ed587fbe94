import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type ComputeGraph, computeGraph } from "../../../tests/support/compute-graph.ts";
import { NOTHING, refusal, Submits } from "../../../tests/support/submits.ts";
import { auditBooks, grantCredit, openAccount, setLimits } from "./account.commands.ts";

let graph: ComputeGraph;
let submits: Submits;
beforeAll(async () => {
  graph = await computeGraph();
  submits = new Submits(graph);
});
afterAll(() => graph.close());
beforeEach(() => submits.begin());

const create: Submits["create"] = (...given) => submits.create(...given);
const counts = () => submits.counts();

describe("money at the door", () => {
  const price = { rateMicrosPerHour: 6_000_000n };

  test("without a payment method nothing is admitted, credits or not", async () => {
    await setLimits(graph.db, TENANT, { paymentMethod: false }, graph.clock.now());
    expect(refusal(await create())).toMatchObject({ code: "payment_method_required", status: 402 });
    expect(await counts()).toEqual(NOTHING);
  });

  test("credits that do not cover the first window are refused with the numbers", async () => {
    await graph.offer(price, { ...price, sku: "dear", rateMicrosPerHour: 60_000_000n });
    await graph.db.sql("update compute.account set balance_micros = 200000, held_micros = 100000");
    // 6 dollars an hour for a minute, a tenth of it as fee, and what rounding may take.
    expect(refusal(await create())).toEqual({
      code: "budget_exceeded",
      status: 402,
      field: undefined,
      detail: {
        month_to_date_usd: 0,
        estimated_cost_usd: 0.110001,
        accruing_usd: 0,
        in_flight_committed_usd: 0.1,
        remaining_headroom_usd: 0.1,
      },
    });
    await grantCredit(graph.db, { teamId: TENANT, micros: 10_001n, note: "" }, graph.clock.now());
    expect((await create()).errors).toBeUndefined();
  });

  test("a limit of its own below the first window is refused with what the start takes, and one that covers it is not", async () => {
    await graph.offer(price);
    expect(refusal(await create({ outcome: { maxCostUsd: 0.11 } }, "small"))).toMatchObject({
      code: "budget_exceeded",
      status: 402,
      field: "/outcome/max_cost_usd",
      detail: { estimated_cost_usd: 0.110001 },
    });
    expect(await counts()).toEqual(NOTHING);
    expect((await create({ outcome: { maxCostUsd: 0.110001 } }, "small")).errors).toBeUndefined();
  });

  test("a monthly cap counts what this month was charged and what is held, and another month counts as nothing", async () => {
    await graph.offer(price);
    const set = (month: string) =>
      graph.db.sql(
        `update compute.account set monthly_cap_micros = 1000000, month_spend_micros = 800000, held_micros = 100000, month_start = $1`,
        [new Date(month)],
      );
    await set("2026-03-01T00:00:00Z");
    expect(refusal(await create()).detail).toEqual({
      monthly_spend_cap_usd: 1,
      month_to_date_usd: 0.8,
      estimated_cost_usd: 0.110001,
      accruing_usd: 0,
      in_flight_committed_usd: 0.1,
      remaining_headroom_usd: 0.1,
    });
    await set("2026-02-01T00:00:00Z");
    expect((await create()).errors).toBeUndefined();
  });

  test("the last credit cannot be spent twice by price unknown: nothing left is a refusal without any offer", async () => {
    await graph.db.sql("update compute.account set balance_micros = 5, held_micros = 5");
    expect(refusal(await create()).detail).toMatchObject({ estimated_cost_usd: 0, remaining_headroom_usd: 0 });
  });

  test("as many workloads as are allowed get in, however many come at once", async () => {
    await setLimits(graph.db, TENANT, { concurrentRunsLimit: 7 }, graph.clock.now());
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => create({}, `key-${i}`)));
    const refused = answers.filter((a) => a.errors);
    expect(refused).toHaveLength(13);
    for (const answer of refused) expect(refusal(answer)).toMatchObject({ code: "too_many_runs", status: 429 });
    expect(await counts()).toMatchObject({ workloads: 7, keys: 7, runs: 7 });
    const { id } = answers.find((a) => !a.errors)!.data.createWorkload.workload;
    await graph.run(`mutation { cancelWorkload(input: { id: "${id}" }) { status } }`);
    expect(await counts()).toMatchObject({ runs: 6 });
    expect((await create({}, "one-more")).errors).toBeUndefined();
  });

  test("books that do not add up stop admission until they do", async () => {
    await graph.db.sql("delete from compute.account");
    const account = { teamId: TENANT, creditMicros: 5_000_000n, paymentMethod: true, concurrentRunsLimit: 10 };
    await graph.db.command((tx) => openAccount(tx, account, graph.clock.now()));
    expect(await auditBooks(graph.db, TENANT)).toBe(true);
    await graph.db.sql("update compute.account set balance_micros = balance_micros + 1");
    expect(await auditBooks(graph.db, TENANT)).toBe(false);
    expect(refusal(await create())).toMatchObject({ code: "spend_check_unavailable", status: 503 });
    expect(await counts()).toEqual(NOTHING);
    await graph.db.sql("update compute.account set balance_micros = balance_micros - 1");
    expect(await auditBooks(graph.db, TENANT)).toBe(true);
    expect((await create()).errors).toBeUndefined();
  });

  test("a measurement that fails admits nothing, and the same key works afterwards", async () => {
    await graph.db.sql("alter table compute.account rename column held_micros to held_elsewhere");
    try {
      expect(refusal(await create())).toMatchObject({ code: "spend_check_unavailable", status: 503 });
    } finally {
      await graph.db.sql("alter table compute.account rename column held_elsewhere to held_micros");
    }
    expect(await counts()).toEqual(NOTHING);
    expect((await create()).errors).toBeUndefined();
  });

  test("an account is opened once, with credits that are in the books", async () => {
    const account = { teamId: "team_new", creditMicros: 7n, paymentMethod: false, concurrentRunsLimit: 1 };
    const open = () => graph.db.command((tx) => openAccount(tx, account, graph.clock.now()));
    expect([await open(), await open()]).toEqual([true, false]);
    expect(await auditBooks(graph.db, "team_new")).toBe(true);
  });
});
