import { afterAll, beforeAll, expect, test } from "vitest";
import { type PlacedGraph, placedGraph } from "../../../tests/support/compute-graph.ts";
import { moveWorkload } from "./workload.transitions.ts";

let graph: PlacedGraph;
beforeAll(async () => {
  graph = await placedGraph(2);
});
afterAll(() => graph.close());

test("cancelling is safe in every state: it never changes what is over, and asks once", async () => {
  const { db, clock } = graph;
  const cancel = (id: string) =>
    graph.run(`mutation { cancelWorkload(input: { id: "${id}" }) { status workload { status } } }`);
  const { workloadId } = graph.placed[0]!;
  expect((await cancel(workloadId)).data.cancelWorkload).toEqual({
    status: "cancel_requested",
    workload: { status: "cancelled" },
  });
  const before = await db.sql("select revision, event_seq, updated_at from compute.workload where id = $1", [
    workloadId,
  ]);
  await clock.advance(1000);
  expect((await cancel(workloadId)).data.cancelWorkload).toEqual({
    status: "cancel_requested",
    workload: { status: "cancelled" },
  });
  expect(
    await db.sql("select revision, event_seq, updated_at from compute.workload where id = $1", [workloadId]),
  ).toEqual(before);

  const running = graph.placed[1]!;
  await db.sql("update compute.placement set state = 'running', running_at = $2, lease_expires_at = $3 where id = $1", [
    running.placementId,
    clock.now(),
    new Date(clock.now().getTime() + 90_000),
  ]);
  await db.sql("update compute.workload set status = 'running' where id = $1", [running.workloadId]);
  for (let i = 0; i < 2; i++)
    expect((await cancel(running.workloadId)).data.cancelWorkload.workload.status).toBe("running");
  expect(await db.sql("select want from compute.placement where id = $1", [running.placementId])).toEqual([
    { want: "cancel" },
  ]);
  const asked = await db.sql("select type, payload from compute.workload_event where workload_id = $1", [
    running.workloadId,
  ]);
  expect(asked).toEqual([
    { type: "workload.cancel_requested", payload: { status: "running", revision: 4, by: "mem_one" } },
  ]);
  await db.command((tx) => moveWorkload(tx, running.workloadId, { event: "complete", now: clock.now() }));
  expect((await cancel(running.workloadId)).data.cancelWorkload.workload.status).toBe("completed");
});
