import { afterAll, beforeAll, expect, test } from "vitest";
import { TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type PlacedGraph, placedGraph } from "../../../tests/support/compute-graph.ts";
import { charge, post } from "../ledger/ledger.commands.ts";

let graph: PlacedGraph;
beforeAll(async () => {
  graph = await placedGraph();
});
afterAll(() => graph.close());

test("a meter adds what was posted to what is used, and never more than is held", async () => {
  const { db, clock } = graph;
  const { workloadId, placementId } = graph.placed[0]!;
  const METER = `{ workload(id: "${workloadId}") { meter { settledUsd accruingUsd accruingRateUsdHour totalNowUsd asOf
    computeSettledUsd platformFeeSettledUsd subscriptionSettledUsd computeAccruingUsd platformFeeAccruingUsd } } }`;
  const meter = async () => (await graph.run(METER)).data.workload.meter;
  expect(await meter()).toMatchObject({ settledUsd: 0, accruingUsd: 0, accruingRateUsdHour: 0, totalNowUsd: 0 });

  await db.sql("update compute.placement set state = 'running', running_at = $2 where id = $1", [
    placementId,
    clock.now(),
  ]);
  await clock.advance(36_000);
  // 100,000 micros an hour for a hundredth of it, and a tenth as fee.
  expect(await meter()).toEqual({
    settledUsd: 0,
    accruingUsd: 0.0011,
    accruingRateUsdHour: 0.11,
    totalNowUsd: 0.0011,
    asOf: clock.now().toISOString(),
    computeSettledUsd: 0,
    platformFeeSettledUsd: 0,
    subscriptionSettledUsd: 0,
    computeAccruingUsd: 0.001,
    platformFeeAccruingUsd: 0.0001,
  });
  await clock.advance(3_600_000);
  expect(await meter()).toMatchObject({ accruingUsd: 0.001834, totalNowUsd: 0.001834 });

  await db.sql("update compute.placement set state = 'ended', ran_ms = 36000 where id = $1", [placementId]);
  expect(await meter()).toMatchObject({ accruingUsd: 0.0011, accruingRateUsdHour: 0 });
  await db.command(async (tx) => {
    await tx.sql("update compute.placement set state = 'closed', charged_micros = 1100 where id = $1", [placementId]);
    const evidence = { kind: "compute" };
    await post(
      tx,
      TENANT,
      workloadId,
      placementId,
      [
        { account: "compute_revenue", entryType: "customer_charge", creditMicros: 1000n, evidence },
        { account: "platform_fee_revenue", entryType: "customer_charge", creditMicros: 100n },
        { account: "customer_credit", entryType: "settle_close", debitMicros: 1100n },
        { account: "operator_loss", entryType: "operator_loss", debitMicros: 50n },
        { account: "supplier_cost", entryType: "operator_loss", creditMicros: 50n },
      ],
      clock.now(),
    );
    await charge(tx, TENANT, workloadId, 1100n, clock.now());
  });
  expect(await meter()).toMatchObject({
    settledUsd: 0.0011,
    accruingUsd: 0,
    totalNowUsd: 0.0011,
    computeSettledUsd: 0.001,
    platformFeeSettledUsd: 0.0001,
  });
});

test("a ledger shows the customer's side, whose charges add up to the price", async () => {
  const { workloadId } = graph.placed[0]!;
  const LEDGER = `{ workload(id: "${workloadId}") { ledger {
    entries { id correlationId entryType debitUsd creditUsd currency evidence createdAt }
    settlement { status balanceUsd correlationId closedAt } } } }`;
  const { data } = await graph.run(LEDGER);
  const { entries, settlement } = data.workload.ledger;
  expect(entries.map((e: object) => ({ ...e, id: undefined, createdAt: undefined }))).toEqual([
    {
      correlationId: graph.placed[0]!.placementId,
      entryType: "customer_charge",
      debitUsd: 0,
      creditUsd: 0.001,
      currency: "USD",
      evidence: { kind: "compute" },
    },
    {
      correlationId: graph.placed[0]!.placementId,
      entryType: "customer_charge",
      debitUsd: 0,
      creditUsd: 0.0001,
      currency: "USD",
      evidence: null,
    },
    {
      correlationId: graph.placed[0]!.placementId,
      entryType: "settle_close",
      debitUsd: 0.0011,
      creditUsd: 0,
      currency: "USD",
      evidence: null,
    },
  ]);
  expect(settlement).toEqual({ status: "open", balanceUsd: 0, correlationId: workloadId, closedAt: null });
  await graph.db.sql("update compute.workload set settled_at = $2 where id = $1", [workloadId, graph.clock.now()]);
  const closed = await graph.run(LEDGER);
  expect(closed.data.workload.ledger.settlement).toMatchObject({
    status: "settled",
    closedAt: graph.clock.now().toISOString(),
  });
});
