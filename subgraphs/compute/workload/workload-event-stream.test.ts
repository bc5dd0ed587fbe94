import { afterAll, beforeAll, expect, test } from "vitest";
import { openFollowers } from "../../../infra/live/follow.ts";
import { insertAccount, insertPlaced, insertWorkload } from "../../../tests/support/compute-fixtures.ts";
import { type Answer, type ComputeGraph, computeGraph } from "../../../tests/support/compute-graph.ts";
import { topics } from "../topics.ts";
import { appendEvent, moveWorkload } from "./workload.transitions.ts";

let graph: ComputeGraph;
beforeAll(async () => {
  graph = await computeGraph();
  await insertAccount(graph.db, graph.clock.now());
});
afterAll(() => graph.close());

const SUBSCRIPTION = `subscription ($id: ID!, $after: Int) {
  workloadEvents(workloadId: $id, after: $after) { cursor complete event { id seq type payload } }
}`;

interface Item {
  cursor: number;
  complete: boolean;
  event: { seq: number; type: string } | null;
}

async function open(id: string, after: number | null = null): Promise<AsyncIterableIterator<Answer>> {
  const opened = await graph.subscribe(SUBSCRIPTION, { id, after });
  if ("errors" in opened) throw opened.errors![0];
  return opened as AsyncIterableIterator<Answer>;
}

async function readAll(id: string, after: number | null = null): Promise<Item[]> {
  const items: Item[] = [];
  for await (const { data } of await open(id, after)) items.push(data.workloadEvents);
  return items;
}

const append = (id: string, type: string) => graph.db.command((tx) => appendEvent(tx, id, type, {}, graph.clock.now()));

async function cancel(id: string): Promise<void> {
  await graph.db.command((tx) => moveWorkload(tx, id, { event: "cancel", now: graph.clock.now() }));
}

test("readers at every cursor see what many writers at once append: in order, without gap or repeat, to the end", async () => {
  const { workloadId } = await insertWorkload(graph.db, graph.clock.now());
  await append(workloadId, "workload.first");
  const readers = [0, 0, 1, 5, 30].map((after) => readAll(workloadId, after));
  await Promise.all(Array.from({ length: 60 }, (_, i) => append(workloadId, `workload.test_${i}`)));
  await cancel(workloadId);
  const [first, ...others] = await Promise.all(readers);
  expect(first!.map((i) => i.cursor)).toEqual([...Array.from({ length: 62 }, (_, i) => i + 1), 62]);
  expect(first!.at(-2)!.event!.type).toBe("workload.cancelled");
  expect(first!.at(-1)).toEqual({ cursor: 62, complete: true, event: null });
  for (const [i, after] of [0, 1, 5, 30].entries()) expect(others[i]).toEqual(first!.slice(after));
});

test("a reader that hangs up at random comes back to the next event", async () => {
  const { workloadId } = await insertWorkload(graph.db, graph.clock.now());
  const expected = Array.from({ length: 40 }, (_, i) => `workload.test_${i}`);
  const writing = (async () => {
    for (const type of expected) await append(workloadId, type);
    await cancel(workloadId);
  })();
  const types: string[] = [];
  let after = 0;
  for (let complete = false, round = 0; !complete; round++) {
    const stream = await open(workloadId, after);
    for (let i = 0; i <= round % 4 && !complete; i++) {
      const { value } = await stream.next();
      const item: Item = value.data.workloadEvents;
      if (item.event) types.push(item.event.type);
      after = item.cursor;
      complete = item.complete;
    }
    await stream.return!();
  }
  await writing;
  expect(types).toEqual([...expected, "workload.cancelled"]);
  expect(openFollowers()).toBe(0);
});

test("the stream of a workload that ran ends after its last charge, not before", async () => {
  const { workloadId, placementId } = await insertPlaced(graph.db, graph.clock.now());
  const stream = await open(workloadId);
  await cancel(workloadId);
  expect((await stream.next()).value.data.workloadEvents.event.type).toBe("workload.cancelled");
  const next = stream.next();
  await graph.db.command(async (tx) => {
    await tx.sql("update compute.placement set state = 'closed' where id = $1", [placementId]);
    await appendEvent(tx, workloadId, "workload.settled", {}, graph.clock.now());
    tx.wake(topics.workload(workloadId));
  });
  expect((await next).value.data.workloadEvents.event.type).toBe("workload.settled");
  expect((await stream.next()).value.data.workloadEvents).toMatchObject({ complete: true, event: null });
  expect((await stream.next()).done).toBe(true);
});

test("a cursor at the end of a finished workload gets the last item alone", async () => {
  const { workloadId } = await insertWorkload(graph.db, graph.clock.now());
  await cancel(workloadId);
  expect(await readAll(workloadId, 1)).toEqual([{ cursor: 1, complete: true, event: null }]);
  await expect(open(workloadId, -1)).rejects.toMatchObject({ extensions: { code: "invalid_cursor" } });
});

test("an event whose command read the clock before another's is not told as earlier", async () => {
  const { workloadId } = await insertWorkload(graph.db, graph.clock.now());
  const early = graph.clock.now();
  const late = new Date(early.getTime() + 5);
  await graph.db.command((tx) => appendEvent(tx, workloadId, "workload.second", {}, late));
  await graph.db.command((tx) => appendEvent(tx, workloadId, "workload.third", {}, early));
  await graph.db.command((tx) => moveWorkload(tx, workloadId, { event: "cancel", now: early }));
  const rows = await graph.db.sql<{ created_at: Date }>(
    "select created_at from compute.workload_event where workload_id = $1 order by seq",
    [workloadId],
  );
  expect(rows.map((row) => row.created_at)).toEqual([late, late, late]);
});
