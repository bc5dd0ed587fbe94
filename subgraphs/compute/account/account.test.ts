import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { MEMBER, TEAM_KEY } from "../../../tests/support/actors.ts";
import { insertAccount, insertPlaced, insertWorkload, TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type ComputeGraph, computeGraph } from "../../../tests/support/compute-graph.ts";
import { finishWorkload } from "../lifecycle/finish.commands.ts";
import { auditBooks, openAccount, setLimits } from "./account.commands.ts";
import { admit, admitting } from "./admission.ts";

let graph: ComputeGraph;
beforeAll(async () => {
  graph = await computeGraph();
});
afterAll(() => graph.close());
beforeEach(async () => {
  await graph.db.sql("truncate compute.account, compute.ledger_entry, compute.workload, compute.placement");
  const account = { teamId: TENANT, creditMicros: 5_000_000n, paymentMethod: true, concurrentRunsLimit: 3 };
  await graph.db.command((tx) => openAccount(tx, account, graph.clock.now()));
});

const ACCOUNT =
  "id balanceUsd heldUsd monthlyCapUsd paymentMethod concurrentRunsLimit activeRuns monthToDateUsd headroomUsd trialBalanceUsd";

test("an administrator gives credits and sets limits, and what is left out stays", async () => {
  const grant = await graph.run(
    `mutation { grantCredit(input: { amountUsd: 2.5, note: "trial" }) { account { balanceUsd } } }`,
  );
  expect(grant.data.grantCredit.account.balanceUsd).toBe(7.5);
  const set = (input: string) => graph.run(`mutation { setAccountLimits(input: ${input}) { account { ${ACCOUNT} } } }`);
  const first = await set("{ monthlyCapUsd: 3, concurrentRunsLimit: 9, paymentMethod: false }");
  expect(first.data.setAccountLimits.account).toEqual({
    id: TENANT,
    balanceUsd: 7.5,
    heldUsd: 0,
    monthlyCapUsd: 3,
    paymentMethod: false,
    concurrentRunsLimit: 9,
    activeRuns: 0,
    monthToDateUsd: 0,
    headroomUsd: 3,
    trialBalanceUsd: 0,
  });
  const second = await set("{ paymentMethod: true }");
  expect(second.data.setAccountLimits.account).toMatchObject({ monthlyCapUsd: 3, paymentMethod: true });
  const third = await set("{ monthlyCapUsd: null }");
  expect(third.data.setAccountLimits.account).toMatchObject({ monthlyCapUsd: null, headroomUsd: 7.5 });
  expect(await auditBooks(graph.db, TENANT)).toBe(true);
});

test("nobody but an administrator does", async () => {
  for (const actor of [
    { ...MEMBER, role: "member" as const },
    TEAM_KEY,
    { ...MEMBER, scopes: ["workloads:write" as const] },
  ])
    for (const mutation of [
      "grantCredit(input: { amountUsd: 1 })",
      "setAccountLimits(input: { paymentMethod: true })",
    ]) {
      const { errors } = await graph.run(`mutation { ${mutation} { account { id } } }`, {}, actor);
      expect(errors![0]!.extensions).toMatchObject({ code: "forbidden", status: 403 });
    }
});

test.each([
  "grantCredit(input: { amountUsd: 0 })",
  "grantCredit(input: { amountUsd: -1 })",
  "setAccountLimits(input: { monthlyCapUsd: -1 })",
])("%s is refused", async (mutation) => {
  const { errors } = await graph.run(`mutation { ${mutation} { account { id } } }`);
  expect(errors![0]!.extensions).toMatchObject({ code: "invalid_amount", status: 400 });
});

test("the count of unfinished workloads is what the table says, whatever came first", async () => {
  const { db, clock } = graph;
  const now = clock.now();
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    ids.push((await insertWorkload(db, now)).workloadId);
    await admitting(db, (tx) => admit(tx, { tenantId: TENANT, estimateMicros: 0n, maxCostMicros: null, now }));
  }
  const over = { event: "cancel", reason: "cancelled", message: "Cancelled." } as const;
  const end = (workloadId: string) => db.command((tx) => finishWorkload(tx, { workloadId, ...over, now }));
  await Promise.all([end(ids[0]!), end(ids[0]!), end(ids[1]!)]);
  const [row] = await db.sql<{ counted: number; truth: bigint }>(
    `select active_runs as counted, (select count(*) from compute.workload where status <> 'cancelled') as truth
     from compute.account where id = $1`,
    [TENANT],
  );
  expect(row).toEqual({ counted: 1, truth: 1n });
});

test("what runs is shown apart from what is only reserved when credits do not suffice", async () => {
  const { db, clock } = graph;
  await db.sql("delete from compute.account");
  await insertAccount(db, clock.now(), { balanceMicros: 2000n });
  const { placementId } = await insertPlaced(db, clock.now(), { heldMicros: 1834n });
  await db.sql("update compute.placement set state = 'running', running_at = $2 where id = $1", [
    placementId,
    clock.now(),
  ]);
  const now = new Date(clock.now().getTime() + 36_000);
  const admission = admitting(db, (tx) =>
    admit(tx, { tenantId: TENANT, estimateMicros: 1000n, maxCostMicros: null, now }),
  );
  await expect(admission).rejects.toMatchObject({
    kind: { code: "budget_exceeded" },
    detail: {
      extra: {
        month_to_date_usd: 0,
        estimated_cost_usd: 0.001,
        accruing_usd: 0.0011,
        in_flight_committed_usd: 0.000734,
        remaining_headroom_usd: 0.000166,
      },
    },
  });
});

test("a cap beyond what the wire can tell is refused, and changes nothing", async () => {
  const { db, clock } = graph;
  const now = clock.now();
  for (const monthlyCapMicros of [-1n, 2n ** 53n + 1n, 10n ** 30n])
    await expect(setLimits(db, TENANT, { monthlyCapMicros }, now)).rejects.toMatchObject({
      kind: { code: "invalid_amount" },
    });
  expect(await setLimits(db, TENANT, { monthlyCapMicros: 2n ** 53n }, now)).toMatchObject({
    monthlyCapMicros: 2n ** 53n,
  });
});
