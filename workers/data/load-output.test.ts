import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { csv, jsonl, type LoadFixture, loadFixture } from "../../tests/support/load-fixture.ts";

let fixture: LoadFixture;
beforeAll(async () => {
  fixture = await loadFixture();
}, 60_000);
afterAll(() => fixture?.close());

const PEOPLE = 'id,Name,note\n1,Ann,"says ""hi"", twice"\n2,Bö,\n3,"",x\n';

test("a CSV output is in its table once its stage is completed, and is told and shown so", async () => {
  const { run, load } = await fixture.loaded(csv(PEOPLE, "people"));
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
  const sink = { name: "o", connection_id: fixture.shop.id, table: "people" };
  const about = { load_id: load.id, workload_id: run.workloadId, stage: "main", generation: 1, ...sink };
  expect(await fixture.events(run.workloadId)).toMatchObject([
    { type: "load.loading", payload: about },
    { type: "load.loaded", payload: { ...about, rows: 3 } },
    { type: "workload.sink_loaded", payload: { ...sink, stage_id: "main", generation: 1, rows: 3 } },
  ]);
  expect(await fixture.scratch()).toEqual([]);
  const shown = await fixture.compute.run(
    "query ($id: ID!) { workload(id: $id) { sinkError outputs { sinkState sinkRows sinkError } } }",
    { id: run.workloadId },
  );
  expect(shown.data.workload).toEqual({
    sinkError: null,
    outputs: [{ sinkState: "loaded", sinkRows: 3, sinkError: null }],
  });
});

test("JSON lines become text, boolean, numeric and jsonb, and a column of nulls alone fits any type", async () => {
  const lines = ['{"t":"x","b":true,"n":1.50,"o":{"k":[1]},"nil":null}', '{"n":2e3,"o":[null],"b":false}'];
  const { load } = await fixture.loaded(jsonl(lines.join("\n"), "lines"));
  expect(load).toMatchObject({ state: "loaded", rowCount: 2 });
  expect(
    await fixture.rows("select t, b, n::text, o, nil, pg_typeof(n)::text as n_type from lines order by n"),
  ).toEqual([
    { t: "x", b: true, n: "1.50", o: { k: [1] }, nil: null, n_type: "numeric" },
    { t: null, b: false, n: "2000", o: [null], nil: null, n_type: "numeric" },
  ]);
  await fixture.asCustomer("create table typed (t text, n double precision, nil date)");
  expect((await fixture.loaded(jsonl('{"t":"y","n":0.5,"nil":null}', "typed"))).load.state).toBe("loaded");
  expect(await fixture.rows("select t, n, nil, nodus_stage from typed")).toEqual([
    { t: "y", n: 0.5, nil: null, nodus_stage: "main" },
  ]);
});

test("loading again puts the same rows there once, and a failure keeps those that are there", async () => {
  const { run, load } = await fixture.loaded(csv("a\n1\n2\n", "again"));
  const again = await fixture.reload(run.workloadId, "o");
  expect(again).toMatchObject({ id: load.id, state: "pending", rowCount: null });
  expect((await fixture.reload(run.workloadId, "o")).id).toBe(load.id);
  await fixture.run(again);
  expect(await fixture.rows("select a from again order by a")).toEqual([{ a: "1" }, { a: "2" }]);
  await fixture.rows("alter table again add constraint only_one check (a <> '2') not valid");
  await fixture.run(await fixture.reload(run.workloadId, "o"));
  expect(await fixture.loadOf(run)).toMatchObject({ state: "failed", error: "table_incompatible", rowCount: null });
  expect(await fixture.rows("select a from again order by a")).toEqual([{ a: "1" }, { a: "2" }]);
  const shown = await fixture.compute.run("query ($id: ID!) { workload(id: $id) { status sinkError } }", {
    id: run.workloadId,
  });
  expect(shown.data.workload).toEqual({ status: "completed", sinkError: "table_incompatible" });
});

test("two outputs of one stage go to their tables, and each replaces its own rows only", async () => {
  const outputs = { x: csv("a\n1\n", "x"), y: csv("a\n2\n", "y"), z: { ...csv("a\n3\n", "z"), table: null } };
  const run = await fixture.completedRun(outputs);
  for (const name of ["x", "y", "x"]) {
    if ((await fixture.loadOf(run, name)).state === "loaded") await fixture.reload(run.workloadId, name);
    await fixture.run(await fixture.loadOf(run, name));
  }
  expect(await fixture.rows("select a from x union all select a from y")).toEqual([{ a: "1" }, { a: "2" }]);
  await expect(fixture.reload(run.workloadId, "z")).rejects.toMatchObject({ kind: { code: "output_has_no_sink" } });
});

describe("a later generation", () => {
  test("that was loaded keeps the rows of an earlier one out, even when it had none", async () => {
    const { run } = await fixture.loaded(csv("a\nold\n", "fenced"));
    await fixture.rows("delete from fenced");
    await fixture.rows(
      `insert into nodus_runs (workload_id, stage, generation, status, loaded_at) values ($1, 'main', 2, 'completed', now())`,
      [run.workloadId],
    );
    await fixture.run(await fixture.reload(run.workloadId, "o"));
    expect(await fixture.loadOf(run)).toMatchObject({ state: "failed", error: "superseded" });
    expect(await fixture.rows("select * from fenced")).toEqual([]);
  });

  test("that the platform knows of is what reloading an earlier one is refused for", async () => {
    const { run, load } = await fixture.loaded(csv("a\nold\n", "known"));
    await fixture.db.sql(
      `insert into data.sink_load select (jsonb_populate_record(l, '{"id": "load_later", "generation": 2}')).*
         from data.sink_load l where id = $1`,
      [load.id],
    );
    await expect(fixture.reload(run.workloadId, "o")).rejects.toMatchObject({ kind: { code: "load_superseded" } });
  });

  test("without a row still takes the place of what was there", async () => {
    const { run } = await fixture.loaded(csv("a\n1\n", "emptied"));
    const [object] = await fixture.db.sql<{ sha256: string }>(
      "select sha256 from data.sink_load where workload_id = $1",
      [run.workloadId],
    );
    expect(object).toBeDefined();
    const empty = await fixture.completedRun({ o: csv("a\n", "emptied") });
    await fixture.db.sql("update data.sink_load set workload_id = 'wl_gone' where workload_id = $1", [run.workloadId]);
    await fixture.db.sql("update data.sink_load set workload_id = $1, generation = 2 where workload_id = $2", [
      run.workloadId,
      empty.workloadId,
    ]);
    await fixture.db.sql("update compute.placement set generation = 2 where workload_id = $1", [run.workloadId]);
    await fixture.run(await fixture.loadOf(run));
    expect(await fixture.loadOf(run)).toMatchObject({ state: "loaded", rowCount: 0, generation: 2 });
    expect(await fixture.rows("select * from emptied")).toEqual([]);
    expect(
      await fixture.rows("select generation from nodus_runs where workload_id = $1 order by 1", [run.workloadId]),
    ).toEqual([{ generation: 1 }, { generation: 2 }]);
  });
});

describe("reloading", () => {
  test("goes on with the pinned credential after the connection was deleted, and not after the credential was destroyed", async () => {
    const own = await fixture.connection();
    const { run } = await fixture.loaded(csv("a\n1\n", "kept"), {}, own);
    await run.settle();
    await fixture.recordRun(await fixture.loadOf(run));
    await fixture.db.sql("update data.connection set deleted_at = now() where id = $1", [own.id]);
    await fixture.run(await fixture.reload(run.workloadId, "o"));
    expect(await fixture.loadOf(run)).toMatchObject({ state: "loaded", runState: "final" });
    await fixture.db.sql("delete from data.secret_version where secret_id = $1", [own.secretId]);
    await expect(fixture.reload(run.workloadId, "o")).rejects.toMatchObject({ kind: { code: "sink_credential_gone" } });
    expect(await fixture.loadOf(run)).toMatchObject({ state: "loaded" });
  });

  test("is refused for outputs that are not there, not the team's, or kept no longer", async () => {
    const { run } = await fixture.loaded(csv("a\n1\n", "kept"));
    await expect(fixture.reload(run.workloadId, "p")).rejects.toMatchObject({ kind: { code: "output_not_found" } });
    await expect(fixture.reload(run.workloadId, "o", "x")).rejects.toMatchObject({
      kind: { code: "output_not_found" },
    });
    await expect(fixture.reload("wl_none", "o")).rejects.toMatchObject({ kind: { code: "not_found" } });
    await fixture.db.sql("update compute.output set removed_at = now() where workload_id = $1", [run.workloadId]);
    await expect(fixture.reload(run.workloadId, "o")).rejects.toMatchObject({ kind: { code: "output_gone" } });
  });
});

test("the row about a run has its last figures once the workload is settled", async () => {
  const { run, load } = await fixture.loaded(csv("a\n1\n", "figures"));
  const read = () => fixture.rows("select * from nodus_runs where workload_id = $1", [run.workloadId]);
  const open = {
    ...{ workload_id: run.workloadId, stage: "main", generation: 1, status: "completed", gpu: null, gpu_count: 0 },
    ...{ region: "local", cost_usd: null, sweep_id: null, loaded_at: fixture.clock.now() },
    ...{ started_at: expect.any(Date), ended_at: expect.any(Date) },
  };
  expect(await read()).toEqual([open]);
  await fixture.recordRun(load); // nothing is known yet
  expect(await fixture.loadOf(run)).toMatchObject({ runState: "open" });
  await run.settle();
  expect(await fixture.loadOf(run)).toMatchObject({ state: "loaded", runState: "due" });
  await fixture.recordRun(load);
  expect(await read()).toEqual([{ ...open, cost_usd: "0.000060" }]);
  expect(await fixture.loadOf(run)).toMatchObject({ runState: "final" });
});

test("figures that nobody can write are tried for a while and then let go", async () => {
  const own = await fixture.connection();
  const { run, load } = await fixture.loaded(csv("a\n1\n", "figures"), {}, own);
  await run.settle();
  await fixture.db.sql("update data.secret_version set ciphertext = ciphertext || '\\x00' where secret_id = $1", [
    own.secretId,
  ]);
  for (let tries = 0; tries < LIMITS.loadRunAttempts; tries++) {
    await fixture.recordRun(load).catch(() => {});
    await fixture.clock.advance(LIMITS.loadQueuedMs * 2 ** tries);
    await fixture.reconcile();
  }
  expect(await fixture.loadOf(run)).toMatchObject({ state: "loaded", runState: "lost" });
  expect(await fixture.db.sql("select 1 from data.connection_use where holder_id = $1", [load.id])).toEqual([]);
});

test("a load of a process that died is done by another, and fails once it has cost too many", async () => {
  const run = await fixture.completedRun({ o: csv("a\n1\n", "taken") });
  const { id } = await fixture.loadOf(run);
  const dead = { objects: { open: () => Promise.reject(new Error("dead")) } };
  const die = async () => {
    await fixture.run({ id }, dead, {}).catch(() => {});
    await fixture.db.sql(
      "update data.sink_load set state = 'loading', ended_at = null, error = null, lease_until = $2 where id = $1",
      [id, fixture.clock.now()],
    );
    await fixture.clock.advance(1);
    await fixture.reconcile();
  };
  await die();
  expect(await fixture.loadOf(run)).toMatchObject({ state: "pending", attempts: 1 });
  for (let deaths = 1; deaths < LIMITS.loadAttempts; deaths++) await die();
  expect(await fixture.loadOf(run)).toMatchObject({ state: "failed", error: "internal" });
});

test("a load that the queue lost is put into it again, and one that its process lets go too", async () => {
  const run = await fixture.completedRun({ o: csv("a\n1\n", "lost") });
  const { id } = await fixture.loadOf(run);
  const queued = () => fixture.db.sql("select 1 from infra.outbox where payload->>'loadId' = $1", [id]);
  expect(await queued()).toHaveLength(1);
  await fixture.db.sql("delete from infra.outbox");
  await fixture.clock.advance(LIMITS.loadQueuedMs);
  await fixture.reconcile();
  expect(await queued()).toHaveLength(1);
  expect(await fixture.run({ id }, { leaving: AbortSignal.abort() })).toMatchObject({ outcome: "retry" });
  await fixture.run({ id }, {}, { signal: AbortSignal.abort() });
  expect(await fixture.loadOf(run)).toMatchObject({ state: "pending", leaseUntil: null, attempts: 0 });
  expect(await queued()).toHaveLength(2);
  await fixture.run({ id });
  expect(await fixture.rows("select a from lost")).toEqual([{ a: "1" }]);
});

test("a team has only so many loads under way at once, and the end of one sends for the next", async () => {
  const outputs = { a: csv("a\n1\n", "one"), b: csv("a\n1\n", "two"), c: csv("a\n1\n", "three") };
  const run = await fixture.completedRun(outputs);
  const loads = await Promise.all(["a", "b", "c"].map((name) => fixture.loadOf(run, name)));
  const until = new Date(fixture.clock.now().getTime() + 60_000);
  const taken = loads.slice(0, LIMITS.loadsAtOnce).map(({ id }) => id);
  await fixture.db.sql("update data.sink_load set state = 'loading', lease_until = $2 where id = any($1)", [
    taken,
    until,
  ]);
  await fixture.run(loads[2]!);
  expect(await fixture.loadOf(run, "c")).toMatchObject({ state: "pending", fence: 0 });
  await fixture.db.sql("update data.sink_load set state = 'pending' where id = $1", [loads[0]!.id]);
  await fixture.db.sql("delete from infra.outbox");
  await fixture.run(loads[0]!);
  const sent = await fixture.db.sql("select payload from infra.outbox where job = 'data.loadOutput'");
  expect(sent).toEqual([{ payload: { loadId: loads[2]!.id } }]);
  await fixture.run(loads[2]!);
  expect((await fixture.loadOf(run, "c")).state).toBe("loaded");
  await fixture.db.sql(
    "update data.sink_load set lease_until = now() - interval '1 day', state = 'failed' where id = any($1)",
    [taken],
  );
});
