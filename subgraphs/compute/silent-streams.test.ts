import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Actor } from "../../infra/kernel/actor.ts";
import { MEMBER, STRANGER } from "../../tests/support/actors.ts";
import { insertAccount, insertPlaced, insertWorkload } from "../../tests/support/compute-fixtures.ts";
import { type Answer, type ComputeGraph, computeGraph } from "../../tests/support/compute-graph.ts";
import { sentStatements } from "../../tests/support/sent-statements.ts";
import { topics } from "./topics.ts";
import { appendEvent } from "./workload/workload.transitions.ts";

const EVENTS = "subscription ($id: ID!) { item: workloadEvents(workloadId: $id, after: 1) { cursor event { type } } }";
const LOGS = "subscription ($id: ID!) { item: workloadLogs(workloadId: $id) { cursor text } }";

/** A workload with somebody of its team. */
interface Followed {
  id: string;
  actor: Actor;
}

let graph: ComputeGraph;
/** Two hundred of one team. */
let ours: Followed[];
/** As many of twenty teams. */
let everyones: Followed[];
beforeAll(async () => {
  graph = await computeGraph();
  await insertAccount(graph.db, graph.clock.now());
  ours = await followed(() => MEMBER);
  everyones = await followed((n) => ({ ...MEMBER, tenantId: `team_${n % 20}` }));
}, 60_000);
afterAll(() => graph.close());

/** Workloads on their way to run, with one event each. */
async function followed(actorOf: (n: number) => Actor): Promise<Followed[]> {
  const now = graph.clock.now();
  const insert = async (_: unknown, n: number): Promise<Followed> => {
    const { workloadId: id } = await insertPlaced(graph.db, now);
    return { id, actor: actorOf(n) };
  };
  const made = await Promise.all(Array.from({ length: 200 }, insert));
  await graph.db.command(async (tx) => {
    for (const { id } of made) await appendEvent(tx, id, "workload.first", {}, now);
    for (const [table, key] of OWNED)
      await tx.sql(
        `update compute.${table} t set tenant_id = of.team from unnest($1::text[], $2::text[]) of (id, team) where t.${key} = of.id`,
        [made.map(({ id }) => id), made.map(({ actor }) => actor.tenantId)],
      );
  });
  return made;
}

const OWNED = [
  ["workload", "id"],
  ...["stage", "placement", "attempt", "workload_event"].map((table) => [table, "workload_id"] as const),
] as const;

/** Streams that have read all there is and wait. */
async function silent(document: string, of: readonly Followed[], count: number) {
  const opened = Array.from({ length: count }, (_, n) => {
    const { id, actor } = of[n % of.length]!;
    return graph.subscribe(document, { id }, actor);
  });
  const streams = (await Promise.all(opened)) as AsyncIterableIterator<Answer>[];
  const waiting = streams.map((stream) => stream.next());
  return { waiting, close: () => Promise.all(streams.map((stream) => stream.return!())) };
}

describe.each([
  ["events", EVENTS, topics.workload],
  ["logs", LOGS, topics.log],
] as const)("streams of %s", (_name, document, topic) => {
  /** Statements of opening so many streams, and of a look of all of them in one turn. */
  async function costOf(of: readonly Followed[], count: number): Promise<{ opening: number; look: number }> {
    const sent = sentStatements();
    try {
      const { close } = await silent(document, of, count);
      const opening = await sent.settled();
      await graph.db.command(async (tx) => {
        for (const { id } of of) tx.wake(topic(id));
      });
      const look = (await sent.settled()) - opening;
      await close();
      return { opening, look };
    } finally {
      sent.stop();
    }
  }

  test("a thousand silent ones of one workload cost as many statements as one", async () => {
    const one = await costOf(ours.slice(0, 1), 1);
    expect(one).toEqual({ opening: 2, look: 1 });
    expect(await costOf(ours.slice(0, 1), 1_000)).toEqual(one);
  });

  test("a thousand silent ones of two hundred workloads cost as many, when they look in one turn", async () => {
    expect(await costOf(ours, 1_000)).toEqual({ opening: 2, look: 1 });
  });

  test("a thousand silent ones of two hundred workloads of twenty teams cost as many", async () => {
    expect(await costOf(everyones, 1_000)).toEqual({ opening: 2, look: 1 });
  });

  test("another team's reader of the same workload, opened in the same turn, is refused", async () => {
    const opened = await Promise.all(
      [undefined, STRANGER, undefined].map((actor) => graph.subscribe(document, { id: ours[0]!.id }, actor)),
    );
    const codes = opened.map((o) => ("errors" in o ? o.errors![0]!.extensions.code : "open"));
    expect(codes).toEqual(["open", "not_found", "open"]);
  });

  test("what is no workload's id is refused without a statement", async () => {
    const sent = sentStatements();
    const opened = await graph.subscribe(document, { id: "wl_\u0000" });
    expect("errors" in opened && opened.errors![0]!.extensions.code).toBe("not_found");
    expect(sent.texts).toEqual([]);
    sent.stop();
  });
});

test("an event reaches a thousand readers of its workload by two statements, and those of another by none", async () => {
  const [mine, other] = await Promise.all([0, 1].map(() => insertWorkload(graph.db, graph.clock.now())));
  for (const { workloadId } of [mine!, other!])
    await graph.db.command((tx) => appendEvent(tx, workloadId, "workload.first", {}, graph.clock.now()));
  const sent = sentStatements();
  const heard = await silent(EVENTS, [{ id: mine!.workloadId, actor: MEMBER }], 1_000);
  const still = await silent(EVENTS, [{ id: other!.workloadId, actor: MEMBER }], 10);
  const before = await sent.settled();
  await graph.db.command((tx) => appendEvent(tx, mine!.workloadId, "workload.second", {}, graph.clock.now()));
  for (const { value } of await Promise.all(heard.waiting)) expect(value.data.item.event.type).toBe("workload.second");
  expect((await sent.settled()) - before).toBe(2);
  sent.stop();
  await Promise.all([heard.close(), still.close()]);
});
