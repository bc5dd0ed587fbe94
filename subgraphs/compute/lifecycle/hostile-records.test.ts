import { beforeEach, describe, expect, test } from "vitest";
import type { Placed } from "../../../tests/support/compute-fixtures.ts";
import { insertHosted, lifeOfEachTest } from "../../../tests/support/lifecycle-world.ts";
import { MiniatureHost } from "../../../tests/support/miniature-host.ts";
import { LogChunk } from "../log/log-chunk.entity.ts";
import { Attempt, Placement } from "../placement/placement.entity.ts";
import { Workload } from "../workload/workload.entity.ts";
import { WorkloadEvent } from "../workload/workload-event.entity.ts";
import { beat, currentAllowance, openSession } from "./session.commands.ts";

const deps = lifeOfEachTest();
let placed: Placed;
let host: MiniatureHost;

beforeEach(async () => {
  ({ placed, host } = await insertHosted(deps));
});

const placement = async () => (await deps.db.row(Placement, "where t.id = $1", [placed.placementId]))!;
const workload = async () => (await deps.db.row(Workload, "where t.id = $1", [placed.workloadId]))!;
const events = () => deps.db.rows(WorkloadEvent, "where t.workload_id = $1 order by t.seq", [placed.workloadId]);
const log = async () => {
  const chunks = await deps.db.rows(LogChunk, "where t.workload_id = $1 order by t.seq", [placed.workloadId]);
  return Buffer.concat(chunks.map((chunk) => chunk.bytes)).toString();
};

describe("what a host says out of order", () => {
  test("behind the end of a generation is not heard, and nothing comes to life again", async () => {
    const late = [host.exit({ startFailure: { kind: "not_found", message: "no such program" } }), host.end()];
    expect(await host.apply(...late, host.running(), host.log(Buffer.from("late")), host.end())).toEqual({ ackSeq: 5 });
    expect(await placement()).toMatchObject({ state: "ended", runningAt: null, logBytes: 0 });
    const attempt = await deps.db.row(Attempt, "where t.id = $1", [placed.orderId]);
    expect(attempt).toMatchObject({ state: "ended" });
    expect((await events()).map((e) => e.type)).toEqual(["workload.stage_failed", "workload.failed"]);
  });

  test("a second exit changes neither the truth nor the charge", async () => {
    await host.apply(host.running(), host.exit({ code: 3, ranMs: 2_000 }));
    await host.apply(host.exit({ code: 0, ranMs: 9_000_000 }), host.end());
    expect(await placement()).toMatchObject({ exitCode: 3, ranMs: 2_000 });
    expect(await workload()).toMatchObject({ status: "failed", reason: "exit_nonzero" });
  });

  test("a command that never ran is charged nothing, whatever time its host tells", async () => {
    const failure = { kind: "not_executable", message: "can't be executed" } as const;
    await host.apply(host.exit({ code: null, startFailure: failure, ranMs: 50_000 }), host.running(), host.end());
    expect(await placement()).toMatchObject({ ranMs: 0, runningAt: null });
    expect(await workload()).toMatchObject({ status: "failed", reason: "start_failed" });
  });

  test("an end without an exit is a loss, not a success", async () => {
    await host.apply(host.running(), host.log(Buffer.from("x")), host.end());
    expect(await placement()).toMatchObject({ state: "ended", outcome: "lost", exitCode: null });
    expect(await workload()).toMatchObject({ status: "recovering" });
  });
});

describe("a log", () => {
  test("with bytes missing in the middle goes on without them and says that its end was lost", async () => {
    const [first, missing, third] = [Buffer.from("one"), Buffer.from("two"), Buffer.from("three")].map((b) =>
      host.log(b),
    );
    const { seq, at } = missing!;
    const unit = { seq, at, type: "unit", id: "u", ms: 1 } as const;
    expect(await host.apply(host.record({}))).toEqual({ gap: 1 });
    expect(await host.apply(first!, unit, third!)).toEqual({ ackSeq: 3 });
    host.seq = 3;
    await host.apply(host.running(), host.exit(), host.end());
    expect(await log()).toBe("one");
    expect(await placement()).toMatchObject({ logBytes: 3, logTailLost: true, logSha256: null, logComplete: true });
    expect(await workload()).toMatchObject({ status: "completed" });
  });

  test("keeps to its limit although the host does not, and says once where it was cut", async () => {
    const limited = { ...deps, settings: { ...deps.settings, logCommittedBytes: 5 } };
    const greedy = await MiniatureHost.open(limited, placed);
    await greedy.apply(greedy.running(), greedy.log(Buffer.from("abcd")), greedy.log(Buffer.from("efgh")));
    await greedy.apply(greedy.log(Buffer.from("more")), greedy.record({ type: "log_truncated", offset: 5 }));
    await greedy.apply(greedy.exit(), greedy.end());
    expect(await log()).toBe("abcde");
    expect(await placement()).toMatchObject({ logBytes: 5, logTruncated: true, logTailLost: false, logSha256: null });
    const cuts = (await events()).filter((e) => e.type === "workload.log_truncated");
    expect(cuts.map((e) => e.payload.captured_bytes)).toEqual([5]);
  });

  test("that is shorter than its host says ends all the same, with its end marked as lost", async () => {
    await host.apply(host.running(), host.log(Buffer.from("short")), host.exit(), host.end({ logBytes: 5_000 }));
    expect(await placement()).toMatchObject({ logBytes: 5, logTailLost: true, logSha256: null });
  });
});

describe("figures", () => {
  test("that fit no column are cut and never keep a run from ending", async () => {
    const absurd = Number.MAX_SAFE_INTEGER;
    await host.apply(host.running(), host.exit({ ranMs: absurd }), host.end({ droppedUnits: absurd }));
    expect((await placement()).droppedUnits).toBe(2 ** 31 - 1);
    expect(await workload()).toMatchObject({ status: "completed" });
  });

  test("of units that came with the end are in the stage's last event", async () => {
    const running = host.running();
    const units = ["a", "b", "a"].map((id) => host.record({ type: "unit", id, ms: 1 }));
    await host.apply(running, ...units, host.exit(), host.end());
    const completed = (await events()).find((e) => e.type === "workload.stage_completed");
    expect(completed!.payload).toMatchObject({ units: 2, stage_id: "main", generation: 1 });
  });

  test("of what it has cost are in the event of its end", async () => {
    await host.apply(host.running(), host.exit({ ranMs: 2_000 }), host.end());
    expect((await events()).find((e) => e.type === "workload.completed")!.payload.spend_usd).toBe(0.00006);
  });
});

describe("a session that a later exchange of the token replaced", () => {
  test("is fenced in everything that it says", async () => {
    const later = await MiniatureHost.open(deps, placed);
    expect(await host.apply(host.running())).toMatchObject({ refused: "fenced" });
    expect(await beat(deps, host.session)).toMatchObject({ refused: "fenced" });
    expect(await currentAllowance(deps, host.session)).toMatchObject({ refused: "fenced" });
    expect(await later.apply(later.running())).toEqual({ ackSeq: 1 });
  });
});

test("an order whose name the database would not take is not known", async () => {
  expect(await openSession(deps, { orderId: "\0", token: "x", protocol: 1 })).toMatchObject({ refused: "unknown" });
});
