import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { PrivateExceptions } from "../../../infra/net/public-address.ts";
import { MEMBER } from "../../../tests/support/actors.ts";
import { type ComputeGraph, computeGraph } from "../../../tests/support/compute-graph.ts";
import { until } from "../../../tests/support/until.ts";
import { putWebhook } from "../../data/webhook/webhook.commands.ts";
import { openAccount } from "../account/account.commands.ts";
import { createWorkload } from "./create-workload.ts";

let graph: ComputeGraph;
beforeAll(async () => {
  graph = await computeGraph();
  await graph.offer({ rateMicrosPerHour: 6_000_000n });
});
afterAll(() => graph.close());
beforeEach(empty);

/** A limit that some of a team's requests meet. */
const TIGHT = 2;
const TEAMS = ["team_a", "team_b", "team_c"];

async function empty(): Promise<void> {
  await graph.db.sql(
    `truncate compute.account, compute.workload, compute.stage, compute.workload_event, compute.ledger_entry,
       infra.outbox, infra.idempotency_key, data.webhook, data.webhook_delivery cascade`,
  );
}

async function open(teamId: string, over: { limit?: number; creditMicros?: bigint; pays?: boolean } = {}) {
  const { limit = 1_000, creditMicros = 10_000_000n, pays = true } = over;
  const account = { teamId, creditMicros, paymentMethod: pays, concurrentRunsLimit: limit };
  await graph.db.command((tx) => openAccount(tx, account, graph.clock.now()));
}

interface Ask {
  team: number;
  key: number;
  /** Two texts under one key are a conflict. */
  text: number;
  maxCostUsd?: number | undefined;
}

async function submit({ team, key, text, maxCostUsd }: Ask): Promise<string> {
  const outcome = maxCostUsd === undefined ? {} : { max_cost_usd: maxCostUsd };
  const request = { payload: { source: { command: [`${text}`] }, outcome }, idempotencyKey: `key-${key}` };
  try {
    const actor = { ...MEMBER, tenantId: TEAMS[team]! };
    const { replayed } = await createWorkload(graph.deps, actor, request, graph.clock.now());
    return replayed ? "replayed" : "accepted";
  } catch (error) {
    if (error instanceof Refused) return error.kind.code;
    throw error;
  }
}

/** What an admission leaves, for each team. */
const left = () =>
  graph.db.sql<{ id: string; active_runs: number }>(
    `select a.id, a.active_runs, (select count(*) from compute.workload w where w.tenant_id = a.id) as workloads,
       (select count(*) from compute.stage s where s.tenant_id = a.id and s.status = 'placing') as stages,
       (select count(*) from compute.workload_event e where e.tenant_id = a.id and e.seq = 1) as events,
       (select count(*) from infra.idempotency_key k join compute.workload w on w.id = k.object_id
         where k.tenant_id = a.id and w.tenant_id = a.id) as keys,
       (select count(*) from infra.outbox o join compute.stage s on s.id = o.payload ->> 'stageRunId'
         where s.tenant_id = a.id and o.job = 'compute.placeStage') as jobs
     from compute.account a order by a.id`,
  );

const asks = fc.array(
  fc.record({
    ...{ team: fc.nat(2), key: fc.nat(11), text: fc.constantFrom(0, 0, 0, 1) },
    maxCostUsd: fc.constantFrom(undefined, undefined, 5, 0.000_001),
  }),
  { minLength: 1, maxLength: 24 },
);
const accounts = fc.tuple(
  ...TEAMS.map(() => fc.record({ limit: fc.constantFrom(0, TIGHT, 100), pays: fc.constantFrom(true, true, false) })),
);

/**
 * What comes together is answered in an order that is chance. So that each order gives the same answers, one key means one
 * request, and where not all of a team's get in, each is a new one that only the number of runs keeps out.
 */
function inAnyOrder(given: readonly Ask[], teams: readonly { limit: number }[]): Ask[] {
  const known = new Map<string, Ask>();
  const requests: Ask[] = [];
  for (const ask of given) {
    const name = `${ask.team} ${ask.key}`;
    const tight = teams[ask.team]!.limit === TIGHT;
    if (tight && known.has(name)) continue;
    const request = known.get(name) ?? (tight ? { ...ask, maxCostUsd: undefined } : ask);
    known.set(name, request);
    requests.push(request);
  }
  return requests;
}

test("admissions that come together leave and answer what the same leave and are answered one by one", async () => {
  const world = async (
    teams: readonly { limit: number; pays: boolean }[],
    all: (given: Ask[]) => Promise<string[]>,
  ) => {
    await empty();
    for (const [i, team] of teams.entries()) await open(TEAMS[i]!, team);
    return async (given: Ask[]) => ({ answers: (await all(given)).sort(), left: await left() });
  };
  const oneByOne = async (given: Ask[]) => {
    const answers: string[] = [];
    for (const ask of given) answers.push(await submit(ask));
    return answers;
  };
  const together = (given: Ask[]) => Promise.all(given.map(submit));
  await fc.assert(
    fc.asyncProperty(asks, accounts, async (given, teams) => {
      const requests = inAnyOrder(given, teams);
      const expected = await (await world(teams, oneByOne))(requests);
      expect(await (await world(teams, together))(requests)).toEqual(expected);
    }),
    { numRuns: 20 },
  );
}, 60_000);

test("one team's refusal, conflict or repeat takes nothing from those that came with it", async () => {
  await open("team_a");
  await open("team_b", { pays: false });
  await submit({ team: 0, key: 1, text: 1 });
  const answers = await Promise.all(
    [
      { team: 0, key: 1, text: 1 },
      { team: 0, key: 1, text: 2 },
      { team: 0, key: 2, text: 1 },
      { team: 1, key: 1, text: 1 },
      { team: 0, key: 3, text: 1, maxCostUsd: 0.000_001 },
      { team: 0, key: 4, text: 1 },
      { team: 0, key: 4, text: 1 },
    ].map(submit),
  );
  expect(answers.slice(0, 5)).toEqual([
    "replayed",
    "idempotency_conflict",
    "accepted",
    "payment_method_required",
    "budget_exceeded",
  ]);
  expect(answers.slice(5).sort()).toEqual(["accepted", "replayed"]);
  expect(await left()).toMatchObject([
    { id: "team_a", active_runs: 3, workloads: 3n, keys: 3n },
    { id: "team_b", active_runs: 0 },
  ]);
});

test("forty admissions of one team change its account twice, not forty times", async () => {
  await open("team_a");
  const versions = () => graph.db.sql<{ v: string }>("select xmin::text as v from compute.account");
  const before = await versions();
  const seen = new Set<string>();
  await Promise.all(
    Array.from({ length: 40 }, async (_, key) => {
      await submit({ team: 0, key, text: 1 });
      for (const { v } of await versions()) seen.add(v);
    }),
  );
  expect(await left()).toMatchObject([
    { active_runs: 40, workloads: 40n, stages: 40n, events: 40n, keys: 40n, jobs: 40n },
  ]);
  expect(seen.has(before[0]!.v)).toBe(false);
  expect(seen.size).toBeLessThanOrEqual(Math.ceil(40 / LIMITS.groupMembers));
});

test("a team whose account is locked waits by itself", async () => {
  for (const team of TEAMS) await open(team);
  let release = () => {};
  const held = graph.db.command(async (tx) => {
    await tx.sql("select 1 from compute.account where id = 'team_a' for update");
    await new Promise<void>((resolve) => {
      release = resolve;
    });
  });
  const done: number[] = [];
  const all = [0, 1, 2].map((team) => submit({ team, key: 1, text: 1 }).then(() => done.push(team)));
  try {
    await until("the others are in", async () => done.includes(1) && done.includes(2), { timeoutMs: 20_000 });
    expect(done).not.toContain(0);
  } finally {
    release();
    await held;
  }
  await Promise.all(all);
  expect((await left()).map(({ active_runs: n }) => n)).toEqual([1, 1, 1]);
}, 30_000);

test("a commit whose answer is lost is the caller's own admission, not a repeat of another's", async () => {
  await open("team_a");
  let lost = false;
  const forgetful = new Proxy(graph.db, {
    get(db, name) {
      const member = Reflect.get(db, name, db);
      if (name !== "command") return typeof member === "function" ? member.bind(db) : member;
      return async (work: never) => {
        const answer = await db.command(work);
        if (lost) return answer;
        lost = true;
        throw new Error("the connection was lost");
      };
    },
  });
  const request = { payload: { source: { command: ["true"] } }, idempotencyKey: "key" };
  const actor = { ...MEMBER, tenantId: "team_a" };
  const submitted = await createWorkload({ ...graph.deps, db: forgetful }, actor, request, graph.clock.now());
  expect(submitted.replayed).toBe(false);
  expect(await left()).toMatchObject([{ active_runs: 1, workloads: 1n }]);
});

test("every team's webhook is told of its own, and a team without one is none the worse", async () => {
  for (const team of TEAMS) await open(team);
  const deps = { db: graph.db, box: graph.secretBox, exceptions: new PrivateExceptions([]) };
  for (const tenantId of TEAMS.slice(0, 2))
    await putWebhook(deps, { ...MEMBER, tenantId }, { url: "https://example.com/" }, graph.clock.now());
  await Promise.all([0, 0, 1, 2].map((team, key) => submit({ team, key, text: 1 })));
  const told = await graph.db.sql(
    `select d.tenant_id, d.event_type, d.body::jsonb ->> 'workload_id' = w.id as its_own
     from data.webhook_delivery d join compute.workload_event e on e.id = d.event_id
     join compute.workload w on w.id = e.workload_id and w.tenant_id = d.tenant_id order by 1`,
  );
  const accepted = (tenant: string) => ({ tenant_id: tenant, event_type: "workload.accepted", its_own: true });
  expect(told).toEqual([accepted("team_a"), accepted("team_a"), accepted("team_b")]);
});
