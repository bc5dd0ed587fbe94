import { afterAll, beforeAll, expect, test } from "vitest";
import { MEMBER, STRANGER, TEAM_KEY } from "../../../tests/support/actors.ts";
import { insertAccount, insertWorkload, TENANT } from "../../../tests/support/compute-fixtures.ts";
import { type Answer, type ComputeGraph, computeGraph } from "../../../tests/support/compute-graph.ts";
import { WORKLOAD_STATES } from "./workload.machine.ts";
import { statesOf } from "./workload-list.ts";

let graph: ComputeGraph;
/** Newest first. */
let ids: string[];

beforeAll(async () => {
  graph = await computeGraph();
  await insertAccount(graph.db, graph.clock.now());
  ids = [];
  for (let i = 0; i < 120; i++) {
    // Three at a time within one millisecond.
    const now = new Date(graph.clock.now().getTime() + Math.floor(i / 3));
    ids.unshift((await insertWorkload(graph.db, now)).workloadId);
  }
  ids.sort().reverse();
  await graph.db.sql("update compute.workload set owner_user_id = 'mem_one' where id = any($1)", [ids.slice(0, 10)]);
  await graph.db.sql("update compute.workload set status = 'completed' where id = any($1)", [ids.slice(0, 4)]);
  await graph.db.sql("update compute.workload set status = 'running' where id = any($1)", [ids.slice(4, 6)]);
});
afterAll(() => graph.close());

const LIST = `query ($first: Int, $after: String, $offset: Int, $status: [String!], $scope: WorkloadScope) {
  workloads(first: $first, after: $after, offset: $offset, status: $status, scope: $scope) {
    nodes { id status } edges { cursor node { id } } nextOffset pageInfo { hasNextPage endCursor }
  }
}`;
const list = async (variables = {}, actor = MEMBER) => (await graph.run(LIST, variables, actor)).data?.workloads;
const codeOf = async (variables = {}, actor = MEMBER) =>
  (await graph.run(LIST, variables, actor)).errors?.[0]?.extensions.code;

test("pages by cursor and pages by offset both give every workload once, newest first", async () => {
  const byCursor: string[] = [];
  for (let after: string | null = null; ; ) {
    const page: { nodes: { id: string }[]; pageInfo: { hasNextPage: boolean; endCursor: string } } = await list({
      first: 7,
      after,
    });
    byCursor.push(...page.nodes.map((n) => n.id));
    if (!page.pageInfo.hasNextPage) break;
    after = page.pageInfo.endCursor;
  }
  const byOffset: string[] = [];
  for (let offset: number | null = 0; offset !== null; ) {
    const page: { nodes: { id: string }[]; nextOffset: number | null } = await list({ first: 50, offset });
    byOffset.push(...page.nodes.map((n) => n.id));
    offset = page.nextOffset;
  }
  expect(byCursor).toEqual(ids);
  expect(byOffset).toEqual(ids);
});

test("a page has 50 workloads unless said, and the offset of the next one unless it is the last", async () => {
  expect(await list()).toMatchObject({ nodes: { length: 50 }, nextOffset: 50 });
  expect(await list({ first: 100, offset: 20 })).toMatchObject({ nodes: { length: 100 }, nextOffset: null });
  expect(await list({ offset: 1000 })).toMatchObject({ nodes: [], nextOffset: null, pageInfo: { endCursor: null } });
});

test.each([
  [{ first: 0 }, "invalid_limit"],
  [{ first: 101 }, "invalid_limit"],
  [{ offset: -1 }, "invalid_limit"],
  [{ after: "nonsense" }, "invalid_cursor"],
])("%j is refused", async (variables, code) => expect(await codeOf(variables)).toBe(code));

test("a cursor and an offset together are refused", async () => {
  const { pageInfo } = await list({ first: 1 });
  expect(await codeOf({ after: pageInfo.endCursor, offset: 0 })).toBe("invalid_request");
});

test("status words choose states, and words that mean nothing are as if they were not there", async () => {
  const count = async (...status: string[]) => (await list({ status, first: 100 })).nodes.length;
  expect(await count("completed")).toBe(4);
  expect(await count("completed", "running", "nonsense")).toBe(6);
  expect(await count("terminal")).toBe(4);
  expect(await count("active", "terminal")).toBe(100);
  expect(await count("nonsense", "")).toBe(100);
  expect(await count("failed")).toBe(0);
});

test("the groups of states are all of them, each in one", () => {
  const [active, terminal] = [statesOf(["active"])!, statesOf(["terminal"])!];
  expect([...active, ...terminal].sort()).toEqual([...WORKLOAD_STATES].sort());
  expect(terminal).toEqual(["completed", "failed", "cancelled"]);
});

test("mine shows what the member submitted, before paging, and needs a member", async () => {
  expect((await list({ scope: "mine", first: 5 })).nodes.map((n: { id: string }) => n.id)).toEqual(ids.slice(0, 5));
  expect((await list({ scope: "mine" })).nodes).toHaveLength(10);
  expect(await codeOf({ scope: "mine" }, TEAM_KEY)).toBe("attribution_required");
  expect((await list({ scope: "team" }, TEAM_KEY)).nodes).toHaveLength(50);
});

test("another team sees, reads, follows and cancels nothing", async () => {
  expect((await list({}, STRANGER)).nodes).toEqual([]);
  const id = ids[0]!;
  const read = await graph.run(`{ workload(id: "${id}") { id } node(id: "${id}") { id } }`, {}, STRANGER);
  expect(read).toEqual({ data: { workload: null, node: null } });
  const cancelled = await graph.run(`mutation { cancelWorkload(input: { id: "${id}" }) { status } }`, {}, STRANGER);
  expect(cancelled.errors![0]!.extensions).toMatchObject({ code: "not_found", status: 404 });
  for (const document of [
    `subscription { workloadEvents(workloadId: "${id}") { complete } }`,
    `subscription { workloadLogs(workloadId: "${id}") { complete } }`,
  ]) {
    const opened = (await graph.subscribe(document, {}, STRANGER)) as Answer;
    expect(opened.errors![0]!.extensions).toMatchObject({ code: "not_found" });
  }
  const [row] = await graph.db.sql("select cancel_requested_at from compute.workload where id = $1", [id]);
  expect(row).toEqual({ cancel_requested_at: null });
});

test("a node is found by its id alone, whatever it is", async () => {
  const NODE = "query ($id: ID!) { node(id: $id) { __typename id ... on Workload { status } } }";
  const { data } = await graph.run(NODE, { id: ids[5] });
  expect(data.node).toEqual({ __typename: "Workload", id: ids[5], status: "running" });
  for (const id of ["wl_0", "asset_1", "", "wl_../x", `plc_${"0".repeat(32)}`])
    expect((await graph.run(NODE, { id })).data).toEqual({ node: null });
});

test("every read of a table with tenants names the tenant", async () => {
  const { data } = await graph.run(`{ account { id headroomUsd trialBalanceUsd activeRuns } }`, {}, STRANGER);
  expect(data.account).toBeNull();
  expect((await graph.run("{ account { id } }")).data.account).toEqual({ id: TENANT });
});
