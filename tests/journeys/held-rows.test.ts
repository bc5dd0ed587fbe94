import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { anotherTeam } from "../support/another-team.ts";
import { sessionBlockedBy, sessionState } from "../support/blocked-session.ts";
import { Deployment, type Layout } from "../support/deployment.ts";
import type { PlatformClient, RestAnswer } from "../support/platform-client.ts";
import { until } from "../support/until.ts";

const GRAPH = { args: ["up"], settings: { NODUS_ROLES: "gateway,compute,sandboxes,rl,pools,data" } };
const TWO_OF_A_KIND = {
  processes: { one: GRAPH, two: GRAPH },
  environment: (originOf) => ({ NODUS_PUBLIC_URL: originOf("one"), NODUS_INTAKE_URL: originOf("one") }),
} satisfies Layout<"one" | "two">;
const WORKLOAD = { source: { image: "busybox:1", command: ["true"] } };
/** Admissions of the team whose row is held, and of another one. */
const MINE = 50;
const THEIRS = 20;

let deployment: Deployment<"one" | "two">;
let mine: PlatformClient;
let theirs: PlatformClient;
let myTeam: string;
let psql: pg.Client;

beforeAll(async () => {
  deployment = await Deployment.laidOut<"one" | "two">(TWO_OF_A_KIND, {});
  const databaseUrl = deployment.environment().DATABASE_URL!;
  const platform = { databaseUrl, admin: deployment.admin("one") };
  ({ client: mine, teamId: myTeam } = await anotherTeam(platform));
  ({ client: theirs } = await anotherTeam(platform));
  psql = new pg.Client({ connectionString: databaseUrl });
  await psql.connect();
}, 200_000);
beforeEach(({ onTestFailed }) => {
  onTestFailed(() => console.error(deployment?.lastOutput()));
});
afterAll(async () => {
  await psql?.end();
  await deployment?.dispose();
}, 60_000);

const submit = (client: PlatformClient, key: string): Promise<RestAnswer> =>
  client.rest("createWorkload", { body: WORKLOAD, headers: { "Idempotency-Key": key } });
const through = (name: "one" | "two") => (client: PlatformClient) => deployment.admin(name).as(client.key);

async function admitted(teamId: string) {
  const [row] = await deployment.sql<{ workloads: number; keys: number; runs: number }>(
    `select (select count(*)::int from compute.workload where tenant_id = $1) as workloads,
       (select count(*)::int from infra.idempotency_key where tenant_id = $1) as keys,
       (select active_runs from compute.account where id = $1) as runs`,
    [teamId],
  );
  return row!;
}

const unavailable = ({ status, headers, body }: RestAnswer) => {
  expect({ status, error: body.error }).toEqual({ status: 503, error: "unavailable" });
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
};

test("fifty admissions of a team whose account is held keep no other team waiting, and none is doubled or lost", async () => {
  await psql.query("begin");
  await psql.query("select 1 from compute.account where id = $1 for update", [myTeam]);
  const keys = Array.from({ length: MINE }, (_, n) => `held-${n}`);
  const answers = keys.map((key) => submit(mine, key));
  const others = await Promise.all(Array.from({ length: THEIRS }, (_, n) => submit(theirs, `other-${n}`)));
  expect(others.map(({ status }) => status)).toEqual(Array(THEIRS).fill(202));
  expect((await mine.rest("listWorkloads")).status).toBe(200);
  unavailable(await Promise.race(answers));
  expect(await admitted(myTeam)).toEqual({ workloads: 0, keys: 0, runs: 0 });
  await psql.query("rollback");
  const ended = await Promise.all(answers);
  const refused = ended.filter(({ status }) => status !== 202);
  for (const answer of refused) unavailable(answer);
  expect((await admitted(myTeam)).workloads).toBe(MINE - refused.length);
  await until("each key has its workload", async () => {
    const again = await Promise.all(keys.map((key) => submit(mine, key)));
    return again.every(({ status }) => status === 202);
  });
  expect(await admitted(myTeam)).toEqual({ workloads: MINE, keys: MINE, runs: MINE });
}, 90_000);

test("a process that is frozen in the middle of a command loses what it holds, and writes nothing when it comes back", async () => {
  const { status, body } = await submit(mine, "to-be-cancelled");
  expect(status).toBe(202);
  const id: string = body.id;
  await psql.query("begin");
  await psql.query("select 1 from compute.workload where id = $1 for update", [id]);
  const cancel = { path: { id } };
  const frozen = through("two")(mine).rest("cancelWorkload", cancel);
  const pid = await sessionBlockedBy(deployment, psql);
  deployment.signal("two", "SIGSTOP");
  await psql.query("commit");
  const isTheirs = async () => (await sessionState(deployment, pid)) === "idle in transaction";
  await until("the row is the frozen process's", isTheirs, { everyMs: 5 });
  try {
    const meanwhile = through("one")(mine).rest("cancelWorkload", cancel);
    expect((await submit(theirs, "while-one-is-frozen")).status).toBe(202);
    unavailable(await meanwhile);
    const cancelled = await until(
      "the row is free",
      async () => {
        const answer = await through("one")(mine).rest("cancelWorkload", cancel);
        return answer.status === 503 ? null : answer;
      },
      { timeoutMs: 2 * LIMITS.idleTransactionMs },
    );
    expect(cancelled.status).toBeLessThan(300);
  } finally {
    deployment.signal("two", "SIGCONT");
  }
  unavailable(await frozen);
  const events = "select type from compute.workload_event where workload_id = $1 and type like '%cancel%' order by seq";
  expect(await deployment.sql(events, [id])).toEqual([
    { type: "workload.cancel_requested" },
    { type: "workload.cancelled" },
  ]);
  expect((await through("two")(mine).rest("cancelWorkload", cancel)).status).toBeLessThan(300);
}, 90_000);
