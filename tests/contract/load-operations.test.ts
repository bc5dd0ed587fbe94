import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LoadFixture, loadFixture } from "../support/load-fixture.ts";
import { startTlsPostgres, type TlsPostgres } from "../support/tls-postgres.ts";
import { type RestFace, restFace } from "./rest-face.ts";

let face: RestFace;
let postgres: TlsPostgres;
let fixture: LoadFixture;
beforeAll(async () => {
  [face, postgres] = await Promise.all([restFace(undefined, { allowPrivateHosts: ["localhost"] }), startTlsPostgres()]);
  fixture = await loadFixture(postgres, face.compute);
}, 60_000);
afterAll(async () => {
  await fixture?.close();
  await Promise.all([face?.close(), postgres?.close()]);
});

const reload = (id: string, more: { query?: Record<string, string>; as?: "stranger" | null; name?: string } = {}) =>
  face.ask("reloadWorkloadOutput", { path: { id, name: more.name ?? "rows" }, query: more.query, as: more.as });
const outputsOf = async (id: string) => (await face.ask("listWorkloadOutputs", { path: { id } })).body.outputs;
const CSV = { path: "rows.csv", content: "a\n1\n2\n", table: "rows" };

describe("reloading an output", () => {
  it("answers the load, which waits, the same one to whoever repeats it, and shows how it goes on the output", async () => {
    const { workloadId } = await fixture.completedRun({ rows: CSV });
    expect(await outputsOf(workloadId)).toMatchObject([{ name: "rows", sink_state: "pending" }]);
    const first = await reload(workloadId);
    expect([first.status, first.body]).toEqual([
      202,
      {
        ...{ id: expect.stringMatching(/^load_/), workload_id: workloadId, stage: "main", generation: 1 },
        ...{ name: "rows", table: "rows", state: "pending" },
      },
    ]);
    expect((await reload(workloadId, { query: { stage: "main" } })).body).toEqual(first.body);
    await fixture.run(first.body);
    expect(await outputsOf(workloadId)).toMatchObject([{ name: "rows", sink_state: "loaded", sink_rows: 2 }]);
    const again = await reload(workloadId);
    expect([again.status, again.body]).toEqual([202, first.body]);
    await fixture.rows("drop table rows; create view rows as select '1' as a");
    await fixture.run(first.body);
    const [failed] = await outputsOf(workloadId);
    expect(failed).toMatchObject({ sink_state: "failed", sink_error: "table_incompatible" });
    expect(failed).not.toHaveProperty("sink_rows");
    const workload = (await face.ask("getWorkload", { path: { id: workloadId } })).body;
    expect(workload).toMatchObject({ status: "completed", sink_error: "table_incompatible" });
    expect((await reload(workloadId)).body).not.toHaveProperty("sink_error");
  });

  it("wants credentials, and does not find another team's workload", async () => {
    const { workloadId } = await fixture.completedRun({ rows: CSV });
    expect((await reload(workloadId, { as: null })).status).toBe(401);
    const foreign = await reload(workloadId, { as: "stranger" });
    expect([foreign.status, foreign.body.error]).toEqual([404, "not_found"]);
  });

  it("is refused, each time for what is wrong", async () => {
    const { workloadId } = await fixture.completedRun({ rows: CSV, plain: { ...CSV, table: null } });
    const refusal = async (more: Parameters<typeof reload>[1]) => {
      const { status, body } = await reload(workloadId, more);
      return [status, body.error];
    };
    expect(await refusal({ name: "plain" })).toEqual([409, "output_has_no_sink"]);
    expect(await refusal({ name: "other" })).toEqual([404, "output_not_found"]);
    expect(await refusal({ query: { stage: "other" } })).toEqual([404, "output_not_found"]);
    await fixture.db.sql(
      `insert into compute.stage select (jsonb_populate_record(s, '{"id": "st_2", "stage_id": "second", "position": 1}')).*
         from compute.stage s where workload_id = $1`,
      [workloadId],
    );
    await fixture.db.sql(
      `insert into compute.output select (jsonb_populate_record(o, '{"id": "out_2", "stage_id": "second"}')).*
         from compute.output o where workload_id = $1 and name = 'rows'`,
      [workloadId],
    );
    const ambiguous = await reload(workloadId);
    expect([ambiguous.status, ambiguous.body]).toMatchObject([409, { error: "ambiguous_output" }]);
    expect((await reload(workloadId, { query: { stage: "second" } })).body).toMatchObject({ stage: "second" });
    await fixture.db.sql("update compute.output set removed_at = now() where workload_id = $1", [workloadId]);
    expect(await refusal({ query: { stage: "main" } })).toEqual([410, "output_gone"]);
  });
});
