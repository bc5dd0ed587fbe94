import { expect, test } from "vitest";
import { anotherTeam } from "../support/another-team.ts";
import { sharedPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import { cancel, ends, OPERATIONS_ON_A_WORKLOAD, script, settles, submit } from "../support/workloads.ts";

const platform = sharedPlatform();

const CREATE = `mutation submit($workload: WorkloadSpecInput!, $key: String!) {
  createWorkload(input: { workload: $workload, idempotencyKey: $key }) { workload { id } status revision replayed }
}`;
const WORKLOAD = { name: "same", source: { command: ["true"] } };

test("fifty equal submits at once over both faces give one workload and fifty equal answers", {
  timeout: 60_000,
}, async () => {
  const client = platform().admin;
  const key = crypto.randomUUID();
  const overGraph = async () => {
    const { createWorkload } = await client.query(CREATE, { workload: WORKLOAD, key });
    return { id: createWorkload.workload.id, replayed: createWorkload.replayed };
  };
  const overRest = async () => {
    const { status, body, headers } = await client.rest("createWorkload", {
      body: WORKLOAD,
      headers: { "idempotency-key": key },
    });
    expect([status, body.status, body.revision]).toEqual([202, "accepted", 1]);
    return { id: body.id, replayed: headers.get("idempotent-replayed") === "true" };
  };
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => (i % 2 ? overGraph() : overRest())));
  expect(new Set(answers.map((answer) => answer.id)).size).toBe(1);
  expect(answers.filter((answer) => !answer.replayed)).toHaveLength(1);
  const id = answers[0]!.id;
  await settles(client, id);
  const later = await overRest();
  expect(later).toEqual({ id, replayed: true });
  const rows = await platform().sql("select 1 from compute.workload where id = $1 or name = 'same'", [id]);
  expect(rows).toHaveLength(1);
});

test("a key that was used for one workload is refused for another, on both faces", { timeout: 30_000 }, async () => {
  const client = platform().admin;
  const key = crypto.randomUUID();
  await submit(client, script("true"), key);
  const { errors } = await client.graphql(CREATE, { workload: script("false"), key });
  expect(errors[0]?.extensions.code).toBe("idempotency_conflict");
  const { status, body } = await client.rest("createWorkload", {
    body: script("false"),
    headers: { "idempotency-key": key },
  });
  expect([status, body.error]).toEqual([409, "idempotency_conflict"]);
});

test("two teams may use the same key, and see nothing of each other", { timeout: 60_000 }, async () => {
  const mine = platform().admin;
  const { client: theirs } = await anotherTeam(platform());
  const key = crypto.randomUUID();
  const [a, b] = await Promise.all([
    submit(mine, script("echo mine"), key),
    submit(theirs, script("echo theirs"), key),
  ]);
  expect(a).not.toBe(b);
  await Promise.all([ends(mine, a), ends(theirs, b)]);
  const path = { id: a, name: "x" };
  for (const operation of OPERATIONS_ON_A_WORKLOAD) {
    const { status, body } = await theirs.rest(operation, { path });
    expect([operation, status, body.error]).toEqual([operation, 404, "not_found"]);
    expect([operation, (await mine.as(null).rest(operation, { path })).status]).toEqual([operation, 401]);
  }
  const { data } = await theirs.graphql("query($id: ID!) { workload(id: $id) { id } node(id: $id) { id } }", { id: a });
  expect(data).toEqual({ workload: null, node: null });
  const listed = (await theirs.rest("listWorkloads")).body.workloads.map((row: { id: string }) => row.id);
  expect(listed).toEqual([b]);
});

test("a team without money is told the numbers, and may go on once it has some", { timeout: 60_000 }, async () => {
  const { client, teamId } = await anotherTeam(platform(), { creditMicros: 100n });
  const headers = { "idempotency-key": crypto.randomUUID() };
  const refused = await client.rest("createWorkload", { body: WORKLOAD, headers });
  expect(refused.status).toBe(402);
  expect(refused.body).toMatchObject({
    error: "budget_exceeded",
    month_to_date_usd: 0,
    accruing_usd: 0,
    in_flight_committed_usd: 0,
    remaining_headroom_usd: 0.0001,
  });
  expect(refused.body.estimated_cost_usd).toBeGreaterThan(0.001);
  const credited = await platform().command(["accounts", "credit", "5", "--team", teamId]);
  expect(credited).toMatchObject({ code: 0, stdout: expect.stringMatching(/credits +\$5\.0001/) });
  const accepted = await client.rest("createWorkload", { body: WORKLOAD, headers });
  expect(accepted.status).toBe(202);
  expect(await settles(client, accepted.body.id)).toMatchObject({ status: "completed" });
});

test("a monthly cap refuses what would pass it, and tells the cap", { timeout: 30_000 }, async () => {
  const { client } = await anotherTeam(platform());
  await client.query("mutation { setAccountLimits(input: { monthlyCapUsd: 0.001 }) { account { monthlyCapUsd } } }");
  const { errors } = await client.graphql(CREATE, { workload: WORKLOAD, key: "capped" });
  expect(errors[0]?.extensions).toMatchObject({ code: "budget_exceeded", detail: { monthly_spend_cap_usd: 0.001 } });
});

test("a team without a payment method cannot spend even its credits", { timeout: 30_000 }, async () => {
  const { client } = await anotherTeam(platform(), { paymentMethod: false });
  const headers = { "idempotency-key": crypto.randomUUID() };
  const { status, body } = await client.rest("createWorkload", { body: WORKLOAD, headers });
  expect([status, body.error]).toEqual([402, "payment_method_required"]);
  expect((await client.rest("listWorkloads")).body.workloads).toEqual([]);
});

test("a team has no more unfinished work than it may, and may again once some ended", { timeout: 60_000 }, async () => {
  const { client } = await anotherTeam(platform(), { concurrentRunsLimit: 2 });
  const waits = script("true", { requirements: { gpu: "B200" } });
  const ids = [await submit(client, waits), await submit(client, waits)];
  const headers = { "idempotency-key": crypto.randomUUID() };
  const refused = await client.rest("createWorkload", { body: WORKLOAD, headers });
  expect([refused.status, refused.body.error]).toEqual([429, "too_many_runs"]);
  await cancel(client, ids[0]!);
  const accepted = await client.rest("createWorkload", { body: WORKLOAD, headers });
  expect(accepted.status).toBe(202);
  await cancel(client, ids[1]!);
  expect(await settles(client, accepted.body.id)).toMatchObject({ status: "completed" });
});

test("the operator's commands make, list and revoke keys beside the running platform", {
  timeout: 60_000,
}, async () => {
  const { teamId } = await anotherTeam(platform());
  const minted = await platform().command(["keys", "mint", "--team", teamId, "--scope", "workloads:read"]);
  expect(minted.code).toBe(0);
  const client = platform().admin.as(minted.stdout.trim());
  expect((await client.rest("identity")).body.tenant).toBe(teamId);
  const refused = await client.rest("createWorkload", { body: WORKLOAD, headers: { "idempotency-key": "narrow" } });
  expect([refused.status, refused.body.error]).toEqual([403, "insufficient_scope"]);
  const keyId = /key_\w+/.exec(minted.stderr)![0];
  expect((await platform().command(["keys", "ls", "--team", teamId])).stdout).toContain(keyId);
  expect((await platform().command(["keys", "revoke", keyId, "--team", teamId])).code).toBe(0);
  await expect.poll(async () => (await client.rest("identity")).status, { timeout: 10_000 }).toBe(401);
  expect((await platform().admin.rest("identity")).status).toBe(200);
});

test("a user's commands submit, follow, list and cancel", { timeout: 60_000 }, async () => {
  const followed = await platform().command([
    "submit",
    "--follow",
    "--name",
    "typed",
    "--",
    "sh",
    "-c",
    "echo typed; exit 3",
  ]);
  expect(followed).toMatchObject({ code: 1, stdout: expect.stringMatching(/^wl_\w+\ntyped\n$/) });
  expect(followed.stderr).toContain("exit_nonzero");
  const id = followed.stdout.split("\n")[0]!;
  expect((await platform().command(["logs", id])).stdout).toBe("typed\n");
  expect((await platform().command(["ls"])).stdout).toContain(id);
  const waiting = await submit(platform().admin, script("true", { requirements: { gpu: "B200" } }));
  expect((await platform().command(["cancel", waiting])).code).toBe(0);
  expect(await ends(platform().admin, waiting)).toMatchObject({ status: "cancelled" });
});

test("who follows a workload that waits is told once why and what to do, and the log of one is shown without waiting", {
  timeout: 60_000,
}, async () => {
  const following = await platform().begin(["submit", "--follow", "--gpu", "B200", "--", "true"]);
  const id = await until("it is submitted", () => /^wl_\w+/.exec(following.stdout())?.[0]);
  await until("it is told", () => following.stderr().includes("Waiting: "));
  expect(await platform().command(["logs", id])).toMatchObject({ code: 0, stdout: "" });
  expect((await platform().command(["cancel", id])).code).toBe(0);
  const { code, stderr } = await following.ended;
  expect(code).toBe(1);
  expect(stderr).toContain("cancelled");
  expect(stderr.match(/^Waiting: .*$/gm)).toEqual([
    expect.stringMatching(/^Waiting: no_matching_offer \(offers passed over: 1 by \w+\)\. No machine fits: .* --cpu /),
  ]);
});
