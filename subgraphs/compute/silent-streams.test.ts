import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { STRANGER } from "../../tests/support/actors.ts";
import { insertAccount, insertPlaced, insertWorkload } from "../../tests/support/compute-fixtures.ts";
import { type Answer, type ComputeGraph, computeGraph } from "../../tests/support/compute-graph.ts";
import { topics } from "./topics.ts";
import { appendEvent } from "./workload/workload.transitions.ts";

const EVENTS = "subscription ($id: ID!) { item: workloadEvents(workloadId: $id, after: 1) { cursor event { type } } }";
const LOGS = "subscription ($id: ID!) { item: workloadLogs(workloadId: $id) { cursor text } }";

let graph: ComputeGraph;
let ids: string[];
beforeAll(async () => {
  graph = await computeGraph();
  const now = graph.clock.now();
  await insertAccount(graph.db, now);
  ids = await Promise.all(Array.from({ length: 200 }, async () => (await insertPlaced(graph.db, now)).workloadId));
  await graph.db.command(async (tx) => {
    for (const id of ids) await appendEvent(tx, id, "workload.first", {}, now);
  });
}, 60_000);
afterAll(() => graph.close());

/** Counts the statements outside of commands from now on. */
function statements() {
  const spies = [vi.spyOn(graph.db, "sql"), vi.spyOn(graph.db, "rows"), vi.spyOn(graph.db, "row")];
  return {
    count: () => spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0),
    stop: () => {
      for (const spy of spies) spy.mockRestore();
    },
  };
}

/** Streams that have read all there is and wait. */
async function silent(document: string, of: readonly string[], count: number) {
  const opened = Array.from({ length: count }, (_, n) => graph.subscribe(document, { id: of[n % of.length] }));
  const streams = (await Promise.all(opened)) as AsyncIterableIterator<Answer>[];
  const waiting = streams.map((stream) => stream.next());
  return { waiting, close: () => Promise.all(streams.map((stream) => stream.return!())) };
}

/** The count once it has stood still for a while. */
async function quiet(count: () => number): Promise<number> {
  for (let before = -1; before !== count(); await sleep(200)) before = count();
  return count();
}

describe.each([
  ["events", EVENTS, topics.workload],
  ["logs", LOGS, topics.log],
] as const)("streams of %s", (_name, document, topic) => {
  /** Statements of opening so many streams, and of a look of all of them in one turn. */
  async function costOf(of: readonly string[], count: number): Promise<{ opening: number; look: number }> {
    const counted = statements();
    try {
      const { close } = await silent(document, of, count);
      const opening = await quiet(counted.count);
      await graph.db.command(async (tx) => {
        for (const id of of) tx.wake(topic(id));
      });
      const look = (await quiet(counted.count)) - opening;
      await close();
      return { opening, look };
    } finally {
      counted.stop();
    }
  }

  test("a thousand silent ones of one workload cost as many statements as one", async () => {
    const one = await costOf(ids.slice(0, 1), 1);
    expect(one).toEqual({ opening: 2, look: 1 });
    expect(await costOf(ids.slice(0, 1), 1_000)).toEqual(one);
  });

  test("a thousand silent ones of two hundred workloads cost as many, when they look in one turn", async () => {
    expect(await costOf(ids, 1_000)).toEqual({ opening: 2, look: 1 });
  });

  test("another team's reader of the same workload, opened in the same turn, is refused", async () => {
    const opened = await Promise.all(
      [undefined, STRANGER, undefined].map((actor) => graph.subscribe(document, { id: ids[0] }, actor)),
    );
    const codes = opened.map((o) => ("errors" in o ? o.errors![0]!.extensions.code : "open"));
    expect(codes).toEqual(["open", "not_found", "open"]);
  });

  test("what is no workload's id is refused without a statement", async () => {
    const counted = statements();
    const opened = await graph.subscribe(document, { id: "wl_\u0000" });
    expect("errors" in opened && opened.errors![0]!.extensions.code).toBe("not_found");
    expect(counted.count()).toBe(0);
    counted.stop();
  });
});

test("an event reaches a thousand readers of its workload by two statements, and those of another by none", async () => {
  const [mine, other] = await Promise.all([0, 1].map(() => insertWorkload(graph.db, graph.clock.now())));
  for (const { workloadId } of [mine!, other!])
    await graph.db.command((tx) => appendEvent(tx, workloadId, "workload.first", {}, graph.clock.now()));
  const heard = await silent(EVENTS, [mine!.workloadId], 1_000);
  const still = await silent(EVENTS, [other!.workloadId], 10);
  await sleep(200);
  const counted = statements();
  await graph.db.command((tx) => appendEvent(tx, mine!.workloadId, "workload.second", {}, graph.clock.now()));
  for (const { value } of await Promise.all(heard.waiting)) expect(value.data.item.event.type).toBe("workload.second");
  expect(counted.count()).toBe(2);
  counted.stop();
  await Promise.all([heard.close(), still.close()]);
});
