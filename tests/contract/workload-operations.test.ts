import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { insertAccount } from "../support/compute-fixtures.ts";
import { OPERATIONS_ON_A_WORKLOAD } from "../support/workloads.ts";
import { type FinishedRun, finishedRun } from "./finished-run.ts";
import { type RestFace, restFace } from "./rest-face.ts";

let face: RestFace;
let run: FinishedRun;

beforeAll(async () => {
  face = await restFace();
  await insertAccount(face.compute.db, face.compute.clock.now());
  await face.compute.offer({});
  run = await finishedRun(face);
}, 60_000);
afterAll(() => face.close());

const payload = { name: "first", source: { command: ["sh", "-c", "echo hi"] }, outcome: { max_cost_usd: 1.5 } };
const submit = (body: unknown, key: string, as: "member" | "team" | "stranger" = "member") =>
  face.ask("createWorkload", { body, headers: { "idempotency-key": key }, as });
const about = (id = run.workloadId) => ({ path: { id, name: "results.tar" } });

describe("submitting", () => {
  it("accepts a workload once, and answers a repeated key alike with the replay header", async () => {
    const first = await submit(payload, "once");
    expect(first.status).toBe(202);
    expect(first.body).toEqual({
      id: expect.stringMatching(/^wl_/),
      workload_id: first.body.id,
      status: "accepted",
      revision: 1,
    });
    expect(first.headers["idempotent-replayed"]).toBeUndefined();
    const again = await submit(payload, "once");
    expect([again.status, again.headers["idempotent-replayed"], again.body]).toEqual([202, "true", first.body]);
  });

  it("refuses a key that was used for something else, and no key at all", async () => {
    await submit(payload, "twice");
    const other = await submit({ ...payload, name: "second" }, "twice");
    expect([other.status, other.body.error]).toEqual([409, "idempotency_conflict"]);
    expect(other.body).not.toHaveProperty("field"); // a header is no place in the body
    expect(other.body.fix).toContain("Idempotency-Key");
    const without = await face.ask("createWorkload", { body: payload });
    expect([without.status, without.body.error]).toEqual([400, "missing_idempotency_key"]);
    expect(without.body.fix).toContain("Idempotency-Key");
  });

  it("keeps keys of different teams apart", async () => {
    const mine = await submit(payload, "shared");
    const theirs = await submit(payload, "shared", "stranger");
    expect(mine.status).toBe(202);
    expect(theirs.headers["idempotent-replayed"]).toBeUndefined();
    expect(theirs.body.id).not.toBe(mine.body.id);
  });

  it.each([
    [{}, "missing_source", undefined],
    [{ ...payload, requirements: { compute_class: "abacus" } }, "invalid_compute_class", "/requirements/compute_class"],
    [{ ...payload, requirements: { gpu: "G800" } }, "invalid_gpu", "/requirements/gpu"],
    [{ ...payload, continuity: { mode: "forever" } }, "invalid_continuity_mode", "/continuity/mode"],
    [{ ...payload, outcome: { complete_by: "tomorrow" } }, "invalid_complete_by", "/outcome/complete_by"],
    [{ ...payload, outcome: { max_cost_usd: 0 } }, "invalid_max_cost", "/outcome/max_cost_usd"],
    [{ ...payload, inputs: [{ name: "a", uri: "https://x" }] }, "input_uri_unsupported", "/inputs/0/uri"],
    [{ ...payload, inputs: [{ name: "a", nonsense: 1 }] }, "unknown_field", "/inputs/0/nonsense"],
    [{ ...payload, inputs: [{ bucket: {} }] }, "bucket_inputs_unsupported", "/inputs/0/bucket"],
    [{ ...payload, policy: { egressAllow: ["example.com"] } }, "unknown_field", "/policy/egressAllow"],
    [{ ...payload, outcome: { maxCostUsd: 5 } }, "unknown_field", "/outcome/maxCostUsd"],
    [{ ...payload, source: { command: "ls" } }, "invalid_request", "/source/command"],
  ])("refuses %j as %s", async (body, error, field) => {
    const answer = await submit(body, `bad-${error}-${field}`);
    expect([answer.status, answer.body.error, answer.body.field]).toEqual([400, error, field ?? answer.body.field]);
  });

  it("validates without submitting, with the defaults that it would take", async () => {
    const before = (await face.ask("listWorkloads")).body.workloads.length;
    const { status, body } = await face.ask("validateWorkload", { body: payload });
    expect([status, body.valid, body.submitted, body.workload.name]).toEqual([200, true, false, "first"]);
    expect((await face.ask("listWorkloads")).body.workloads).toHaveLength(before);
    const open = await face.ask("validateWorkload", { body: { ...payload, outcome: {} } });
    expect([open.status, open.body.error, open.body.field]).toEqual([
      400,
      "max_cost_required",
      "/outcome/max_cost_usd",
    ]);
  });
});

describe("listing", () => {
  it("pages by offset, newest first, and has no next_offset on the last page", async () => {
    const all = (await face.ask("listWorkloads")).body;
    expect(all.workloads.length).toBeGreaterThan(2);
    expect(all).not.toHaveProperty("next_offset");
    const ids: string[] = [];
    for (let offset = 0; ; ) {
      const page = (await face.ask("listWorkloads", { query: { limit: 2, offset } })).body;
      ids.push(...page.workloads.map((w: { id: string }) => w.id));
      if (page.next_offset === undefined) break;
      offset = page.next_offset;
    }
    expect(ids).toEqual(all.workloads.map((w: { id: string }) => w.id));
  });

  it("takes a limit out of range for the default and refuses what is no number", async () => {
    for (const limit of [0, -1, 101, 5000])
      expect((await face.ask("listWorkloads", { query: { limit } })).status).toBe(200);
    for (const [query, error] of [
      [{ limit: "x" }, "invalid_limit"],
      [{ offset: "x" }, "invalid_cursor"],
      [{ offset: -1 }, "invalid_cursor"],
      [{ offset: 3e9 }, "invalid_cursor"],
    ] as const) {
      const answer = await face.ask("listWorkloads", { query: query as Record<string, string | number> });
      expect([answer.status, answer.body.error]).toEqual([400, error]);
    }
  });

  it("filters by status words, passing over unknown ones, and by who submitted", async () => {
    const list = async (query: Record<string, string>) =>
      (await face.ask("listWorkloads", { query })).body.workloads.map((w: { status: string }) => w.status);
    expect(new Set(await list({ status: "completed" }))).toEqual(new Set(["completed"]));
    expect(await list({ status: "active, nonsense" })).not.toContain("completed");
    expect(await list({ status: "nonsense" })).toEqual(await list({}));
    expect((await list({ scope: "mine" })).length).toBeLessThan((await list({})).length);
    const nobody = await face.ask("listWorkloads", { query: { scope: "mine" }, as: "team" });
    expect([nobody.status, nobody.body.error]).toEqual([403, "attribution_required"]);
    const neither = await face.ask("listWorkloads", { query: { scope: "ours" } });
    expect([neither.status, neither.body.field]).toEqual([400, "/scope"]);
  });
});

describe("a workload that ran", () => {
  it("shows its state, stages, route, meter and units", async () => {
    const { status, body } = await face.ask("getWorkload", about());
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id: run.workloadId,
      tenant_id: "team_fixture",
      status: "completed",
      spend_usd: 0.00006,
    });
    expect(body.stages).toMatchObject([{ id: "main", status: "completed", completed_units: 1, latest_manifest: null }]);
    expect(body.route).toMatchObject({ offer_id: "local-cpu", compute_class: "vm" });
    expect(body.meter).toMatchObject({ settled_usd: 0.00006, accruing_usd: 0, platform_fee_settled_usd: 0.000005 });
    expect(body.unit_metrics).toMatchObject({ units_completed: 1, p50_ms: 12 });
  });

  it("has events in order after a cursor", async () => {
    const { body } = await face.ask("listWorkloadEvents", about());
    const ids = body.events.map((event: { id: number }) => event.id);
    expect(ids).toEqual(ids.map((_: number, i: number) => i + 1));
    const rest = await face.ask("listWorkloadEvents", { ...about(), query: { after: ids[1] } });
    expect(rest.body.events).toEqual(body.events.slice(2));
    for (const after of ["x", -1, 3e9]) {
      const bad = await face.ask("listWorkloadEvents", { ...about(), query: { after } });
      expect([bad.status, bad.body.error]).toEqual([400, "invalid_cursor"]);
    }
  });

  it("has its log saved as bytes and live as text", async () => {
    const saved = await face.ask("getWorkloadLogs", about());
    expect([saved.status, saved.headers["x-nodus-stage-id"], saved.headers["x-nodus-generation"]]).toEqual([
      200,
      "main",
      "1",
    ]);
    expect(saved.text).toBe(run.log.toString("utf8"));
    const live = await face.ask("liveLogs", about());
    expect(live.body.chunks).toMatchObject([
      { id: 1, stage_id: "main", generation: 1, text: run.log.toString("utf8") },
    ]);
    const rest = await face.ask("liveLogs", { ...about(), query: { after: live.body.next_cursor } });
    expect(rest.body).toMatchObject({ chunks: [], next_cursor: live.body.next_cursor });
    const bad = await face.ask("liveLogs", { ...about(), query: { after: "nonsense" } });
    expect([bad.status, bad.body.error]).toEqual([400, "invalid_cursor"]);
    const none = await face.ask("getWorkloadLogs", { ...about(), query: { generation: 7 } });
    expect([none.status, none.body.error]).toEqual([404, "log_not_found"]);
    expect((await face.ask("getWorkloadLogs", { ...about(), query: { generation: 0 } })).status).toBe(400);
  });

  it("has its output listed and downloaded with a hash that matches", async () => {
    const { body } = await face.ask("listWorkloadOutputs", about());
    const [listed] = body.outputs;
    expect([body.workload_id, listed.name, listed.stage_id, listed.bytes]).toEqual([
      run.workloadId,
      "results.tar",
      "main",
      run.output.byteLength,
    ]);
    const answer = await face.app.inject({ url: listed.download, headers: { authorization: "Bearer member" } });
    expect(answer.rawPayload.equals(run.output)).toBe(true);
    expect(answer.headers["x-nodus-sha256"]).toBe(createHash("sha256").update(run.output).digest("hex"));
    const head = await face.ask("downloadWorkloadOutput", { ...about(), head: true });
    expect([head.status, head.headers["content-length"]]).toEqual([200, String(run.output.byteLength)]);
    const none = await face.ask("downloadWorkloadOutput", { path: { id: run.workloadId, name: "../../etc/passwd" } });
    expect([none.status, none.body.error]).toEqual([404, "output_not_found"]);
  });

  it("has its ledger, whose customer charges are its spending", async () => {
    const { body } = await face.ask("getWorkloadLedger", about());
    const charges = body.entries.filter((entry: { entry_type: string }) => entry.entry_type === "customer_charge");
    expect(
      charges.reduce((sum: number, entry: { credit_usd: number }) => sum + Math.round(entry.credit_usd * 1e6), 0),
    ).toBe(60);
    expect([body.workload_id, body.settlement.balance_usd]).toEqual([run.workloadId, 0]);
    expect(body.settlement.closed_at).not.toBeNull();
  });

  it("has its placements, checkpoints and RL page", async () => {
    const routing = (await face.ask("getWorkloadRouting", about())).body;
    expect(routing.placements).toMatchObject([
      { stage_id: "main", generation: 1, sku: "local-cpu", placement: "market", boot_ok: true, superseded_by: null },
    ]);
    const { artifacts } = (await face.ask("listWorkloadArtifacts", about())).body;
    expect(artifacts).toMatchObject([{ stage_id: "main", generation: 1, sequence: 1, manifest: { final: true } }]);
    const rl = await face.ask("listWorkloadRLEvents", about());
    expect(rl.body).toEqual({
      schema_version: 1,
      events: [],
      next_cursor: "",
      has_more: false,
      dropped_events: 0,
      truncated: false,
    });
    expect(rl.headers["cache-control"]).toBe("no-store");
    for (const [query, error] of [
      [{ limit: 0 }, "invalid_limit"],
      [{ limit: 201 }, "invalid_limit"],
      [{ after: "x".repeat(65) }, "invalid_cursor"],
    ] as const)
      expect(
        (await face.ask("listWorkloadRLEvents", { ...about(), query: query as Record<string, string | number> })).body
          .error,
      ).toBe(error);
  });

  it("can be asked to cancel after its end, which changes nothing", async () => {
    for (let i = 0; i < 2; i++)
      expect((await face.ask("cancelWorkload", about())).body).toEqual({ status: "cancel_requested" });
    expect((await face.ask("getWorkload", about())).body.status).toBe("completed");
  });

  it.each(OPERATIONS_ON_A_WORKLOAD)(
    "is not there for another team, nor is one that never was (%s)",
    async (operationId) => {
      for (const answer of [
        await face.ask(operationId, { ...about(), as: "stranger" }),
        await face.ask(operationId, about("wl_0")),
        await face.ask(operationId, about("x\u0000")),
      ])
        expect([answer.status, answer.body.error]).toEqual([404, "not_found"]);
    },
  );

  it("ends a waiting one when it is cancelled", async () => {
    const { id } = (await submit(payload, "to cancel".replace(" ", "-"))).body;
    expect((await face.ask("cancelWorkload", about(id))).status).toBe(202);
    expect((await face.ask("getWorkload", about(id))).body.status).toBe("cancelled");
  });
});
