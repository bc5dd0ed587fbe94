import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LoadFixture, loadFixture } from "../../tests/support/load-fixture.ts";

let fixture: LoadFixture;
let connection: { id: string; secretId: string };
beforeAll(async () => {
  fixture = await loadFixture();
  connection = await fixture.connection();
}, 60_000);
afterAll(() => fixture?.close());

const PEOPLE = 'id,Name,note\n1,Ann,"says ""hi"", twice"\n2,Bö,\n3,"",x\n';

test("a CSV output is in its table once its stage is completed, and is told and shown so", async () => {
  const { run, load } = await fixture.loaded(connection, { path: "out/people.csv", content: PEOPLE, table: "people" });
  expect(load).toMatchObject({ state: "loaded", rowCount: 3, error: null, runState: "open" });
  const rows = await fixture.rows("select * from people order by id");
  const own = {
    nodus_workload_id: run.workloadId,
    nodus_generation: 1,
    nodus_stage: "main",
    nodus_loaded_at: fixture.clock.now(),
  };
  expect(rows).toEqual([
    { id: "1", name: "Ann", note: 'says "hi", twice', ...own },
    { id: "2", name: "Bö", note: null, ...own },
    { id: "3", name: "", note: "x", ...own },
  ]);
  const sink = { name: "o", connection_id: connection.id, table: "people" };
  const about = { load_id: load.id, workload_id: run.workloadId, stage: "main", generation: 1, ...sink };
  expect(await fixture.events(run.workloadId)).toMatchObject([
    { type: "load.loading", payload: about },
    { type: "load.loaded", payload: { ...about, rows: 3 } },
    { type: "workload.sink_loaded", payload: { ...sink, stage_id: "main", generation: 1, rows: 3 } },
  ]);
  expect(await fixture.scratch()).toEqual([]);
});
