import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { anotherTeam } from "../support/another-team.ts";
import { sessionBlockedBy, sessionState } from "../support/blocked-session.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { startTwoWorkers, type TwoWorkers } from "../support/two-workers.ts";
import { until } from "../support/until.ts";
import { cancel, ends, reaches, script, settles, stateOf, submit } from "../support/workloads.ts";

let deployment: TwoWorkers;
let mine: PlatformClient;
let theirs: PlatformClient;
let myTeam: string;
/** Hold rows, each in a transaction of its own. */
let holder: pg.Client;
let keeper: pg.Client;

beforeAll(async () => {
  deployment = await startTwoWorkers();
  const databaseUrl = deployment.environment().DATABASE_URL!;
  const platform = { databaseUrl, admin: deployment.admin("graph") };
  ({ client: mine, teamId: myTeam } = await anotherTeam(platform));
  ({ client: theirs } = await anotherTeam(platform));
  [holder, keeper] = [
    new pg.Client({ connectionString: databaseUrl }),
    new pg.Client({ connectionString: databaseUrl }),
  ];
  await Promise.all([holder.connect(), keeper.connect()]);
}, 200_000);
beforeEach(({ onTestFailed }) => {
  onTestFailed(() => console.error(deployment?.lastOutput()));
});
afterAll(async () => {
  await Promise.all([holder?.end(), keeper?.end()]);
  await deployment?.dispose();
}, 60_000);

/** Nothing is released and nothing is placed until the transaction ends. */
async function keepCapacity(): Promise<void> {
  await keeper.query("begin");
  await keeper.query("select 1 from compute.capacity for update");
}

/**
 * Freezes the worker whose transaction waits for what `holder` holds, and lets that go: the row is the frozen process's
 * now, with all else that its transaction has locked. The session of it; the other worker was stopped before, and goes on.
 */
async function freezeInTransaction(): Promise<number> {
  // A claim that waited as long as this has begun again, and does not give up for two seconds.
  const pid = await sessionBlockedBy(deployment, holder, { forMs: 1.5 * LIMITS.groupLockMs });
  deployment.signal("worker", "SIGSTOP");
  await holder.query("rollback");
  await until(
    "the frozen worker has what was held",
    async () => (await sessionState(deployment, pid)) === "idle in transaction",
  );
  deployment.signal("worker-2", "SIGCONT");
  return pid;
}

/** Resolves when the database has ended the session of a frozen process. */
const freed = (pid: number) =>
  until("what the frozen worker held is free", async () => (await sessionState(deployment, pid)) === null, {
    timeoutMs: 2 * LIMITS.idleTransactionMs,
  });

async function eventsOf(workloadId: string): Promise<string[]> {
  const events = "select type from compute.workload_event where workload_id = $1 order by seq";
  return (await deployment.sql<{ type: string }>(events, [workloadId])).map(({ type }) => type);
}

/** Of a workload that ran: once, paid for once, and nothing of it is left. */
async function ranOnce(id: string): Promise<void> {
  const state = await settles(mine, id);
  expect(state).toMatchObject({ status: "completed", placements: [{ generation: 1, state: "closed" }] });
  const events = await eventsOf(id);
  const once = [
    "workload.reserving",
    "workload.provisioning",
    "workload.running",
    "workload.completed",
    "workload.settled",
  ];
  for (const type of once)
    expect(
      events.filter((other) => other === type),
      type,
    ).toHaveLength(1);
  expect(events).not.toContain("workload.waiting");
  const [books] = await deployment.sql(
    `select (select count(*)::int from compute.attempt where workload_id = $1) as attempts,
       (sum(debit_micros) - sum(credit_micros))::int as difference,
       count(*) filter (where entry_type = 'settle_close')::int as settlements,
       sum(credit_micros) filter (where entry_type = 'customer_charge')
         = (select spend_micros from compute.workload where id = $1) as charged
     from compute.ledger_entry where subject_id = $1`,
    [id],
  );
  expect(books).toEqual({ attempts: 1, difference: 0, settlements: 1, charged: true });
  const { account } = await mine.query("{ account { activeRuns heldUsd } }");
  expect(account).toEqual({ activeRuns: 0, heldUsd: 0 });
}

/** What an account has is what was put there less what its workloads cost, whoever wrote when. */
async function accountAddsUp(): Promise<void> {
  const [account] = await deployment.sql(
    `select (100000000 - balance_micros - (select coalesce(sum(spend_micros), 0) from compute.workload where tenant_id = a.id))::int as missing
     from compute.account a where id = $1`,
    [myTeam],
  );
  expect(account).toEqual({ missing: 0 });
}

const noSlotsInUse = async () =>
  (await deployment.sql<{ slots: number }>("select sum(slots_used)::int as slots from compute.capacity"))[0]!.slots ===
  0;

test("a worker that is frozen in the middle of a claim loses it, and another one places the stage, once", async () => {
  const theirLong = await submit(theirs, script("sleep 600"));
  await reaches(theirs, theirLong, ["running"]);
  deployment.signal("worker-2", "SIGSTOP");
  await keepCapacity();
  const id = await submit(mine, script("sleep 1"));
  await holder.query("begin");
  await holder.query(
    `insert into compute.workload_event (id, tenant_id, workload_id, seq, type, payload, created_at)
     select 'ev_held', tenant_id, id, event_seq + 1, 'held', '{}', updated_at from compute.workload where id = $1`,
    [id],
  );
  await keeper.query("rollback");
  const pid = await freezeInTransaction();
  const end = freed(pid);
  try {
    const cancelled = async () => {
      await cancel(theirs, theirLong);
      await ends(theirs, theirLong);
      return "theirs";
    };
    expect(await Promise.race([cancelled(), end])).toBe("theirs");
    const theirNext = await submit(theirs, script("true"));
    await end;
    await ranOnce(id);
    expect((await settles(theirs, theirNext)).status).toBe("completed");
    expect(await eventsOf(theirNext)).not.toContain("workload.waiting");
  } finally {
    deployment.signal("worker", "SIGCONT");
  }
  await until("the worker is there again", async () => (await fetch(`${deployment.originOf("worker")}/readyz`)).ok);
  await until("nothing is in use", noSlotsInUse);
  await ranOnce(id);
  await accountAddsUp();
}, 120_000);

test("a worker that is frozen in the middle of a settlement loses it, and the run is charged once", async () => {
  const id = await submit(mine, script("sleep 1"));
  await reaches(mine, id, ["running"]);
  deployment.signal("worker-2", "SIGSTOP");
  await keepCapacity();
  await ends(mine, id);
  await holder.query("begin");
  await holder.query("select 1 from compute.account where id = $1 for update", [myTeam]);
  await keeper.query("rollback");
  const pid = await freezeInTransaction();
  const end = freed(pid);
  try {
    const theirRun = async () => {
      const settled = await settles(theirs, await submit(theirs, script("true")));
      return settled.status as string;
    };
    expect(await Promise.race([theirRun(), end])).toBe("completed");
    expect(await stateOf(mine, id)).toMatchObject({
      settledAt: null,
      placements: [{ state: "ended", chargedUsd: null }],
    });
    await end;
  } finally {
    deployment.signal("worker", "SIGCONT");
  }
  await ranOnce(id);
  await accountAddsUp();
}, 120_000);
