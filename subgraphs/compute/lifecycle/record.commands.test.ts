import { describe, expect, test } from "vitest";
import { Refused, refusals } from "../../../infra/kernel/refusal.ts";
import type { ExitRecord } from "../../../infra/runner/protocol.ts";
import { insertPlaced, type Placed, TENANT } from "../../../tests/support/compute-fixtures.ts";
import { insertHosted, lifeOfEachTest } from "../../../tests/support/lifecycle-world.ts";
import { MiniatureHost } from "../../../tests/support/miniature-host.ts";
import { storedResult } from "../../../tests/support/stored-result.ts";
import { Account } from "../account/account.entity.ts";
import { trialBalance } from "../ledger/ledger.commands.ts";
import { LedgerEntry } from "../ledger/ledger-entry.entity.ts";
import { LogChunk } from "../log/log-chunk.entity.ts";
import { Output } from "../output/output.entity.ts";
import { Placement } from "../placement/placement.entity.ts";
import { Stage } from "../stage/stage.entity.ts";
import { Workload } from "../workload/workload.entity.ts";
import { WorkloadEvent } from "../workload/workload-event.entity.ts";
import { closeIfGone, loseGeneration, requestStop } from "./finish.commands.ts";
import { beat, openSession, resumeSession } from "./session.commands.ts";
import { settle } from "./settlement.commands.ts";

const deps = lifeOfEachTest();

const opened = (over?: Parameters<typeof insertHosted>[1]) => insertHosted(deps, over);
const workload = async (id: string) => (await deps.db.row(Workload, "where t.id = $1", [id]))!;
const placement = async (id: string) => (await deps.db.row(Placement, "where t.id = $1", [id]))!;
const events = async (id: string) =>
  (await deps.db.rows(WorkloadEvent, "where t.workload_id = $1 order by t.seq", [id])).map((e) => e.type);
const account = async () => (await deps.db.row(Account, "where t.id = $1", [TENANT]))!;

async function confirmGone(placed: Placed): Promise<void> {
  await deps.db.sql("update compute.attempt set state = 'gone', gone_at = $2 where placement_id = $1", [
    placed.placementId,
    deps.clock.now(),
  ]);
  await deps.db.command((tx) => closeIfGone(tx, placed.placementId, deps.clock.now()));
}

test("an output whose bytes are kept no longer when it is told of fails the run, and nothing refers to them", async () => {
  const { placed, host } = await opened();
  const gone = { sha256: "a".repeat(64), bytes: 3, media: "text/plain", isTar: false };
  await host.apply(host.running(), host.record({ type: "output", name: "left", ...gone }));
  await host.apply(host.exit(), host.end());
  expect(await workload(placed.workloadId)).toMatchObject({ status: "failed", reason: "output_invalid" });
  expect(await deps.db.rows(Output, "where true")).toEqual([]);
});

describe("a run that succeeds", () => {
  test("is completed, and its charge is posted once its resources are gone", async () => {
    const { placed, host } = await opened();
    await host.apply(host.running());
    deps.clock.advance(2_000);
    await host.apply(
      host.log(Buffer.from("hello\n")),
      host.record({
        type: "output",
        name: "outputs.tar",
        ...(await storedResult(deps, "abc")),
        media: "application/x-tar",
        isTar: true,
      }),
    );
    await host.apply(host.exit(), host.end());
    expect(await workload(placed.workloadId)).toMatchObject({
      status: "completed",
      exitCode: 0,
      reason: null,
      settledAt: null,
    });
    expect(await deps.db.command((tx) => settle(tx, placed.placementId, deps.clock.now()))).toBe("not_due");
    await confirmGone(placed);
    expect(await deps.db.command((tx) => settle(tx, placed.placementId, deps.clock.now()))).toBe("settled");
    expect(await deps.db.command((tx) => settle(tx, placed.placementId, deps.clock.now()))).toBe("not_due");
    // floor(100,000 x 2,000 / 3,600,000) = 55, and a tenth of it, rounded down, for the platform.
    const entries = await deps.db.rows(LedgerEntry, "order by t.id");
    expect(entries.map((e) => [e.entryType, e.debitMicros, e.creditMicros])).toEqual([
      ["customer_charge", 0n, 55n],
      ["customer_charge", 0n, 5n],
      ["settle_close", 60n, 0n],
    ]);
    expect(await trialBalance(deps.db, TENANT)).toBe(0n);
    expect(await account()).toMatchObject({ balanceMicros: 100_000_000n - 60n, heldMicros: 0n, monthSpendMicros: 60n });
    expect(await workload(placed.workloadId)).toMatchObject({
      spendMicros: 60n,
      heldMicros: 0n,
      settledAt: deps.clock.now(),
    });
    expect(await events(placed.workloadId)).toEqual([
      "workload.running",
      "workload.stage_started",
      "workload.stage_completed",
      "workload.completed",
      "workload.resources_released",
      "workload.settled",
    ]);
    expect(await deps.db.rows(Output, "")).toHaveLength(1);
  });

  test("is not charged above what was held; the rest is the operator's loss", async () => {
    const { placed, host } = await opened({ heldMicros: 20n });
    await host.apply(host.running(), host.exit({ ranMs: 2_000 }), host.end());
    await confirmGone(placed);
    await deps.db.command((tx) => settle(tx, placed.placementId, deps.clock.now()));
    expect((await workload(placed.workloadId)).spendMicros).toBe(20n);
    const loss = await deps.db.rows(LedgerEntry, "where t.account = 'operator_loss'");
    expect(loss.map((e) => e.debitMicros)).toEqual([40n]);
    expect(await trialBalance(deps.db, null)).toBe(0n);
  });
});

describe("records", () => {
  test("prove their host alive as a heartbeat does: one whose guest is over delivers long after its last beat", async () => {
    const { placed, host } = await opened();
    await host.apply(host.running());
    const before = (await placement(placed.placementId)).leaseExpiresAt!;
    await deps.clock.advance(40_000);
    await host.apply(host.log(Buffer.from("late\n")));
    const { lastBeatAt, leaseExpiresAt } = await placement(placed.placementId);
    expect(lastBeatAt).toEqual(deps.clock.now());
    expect(leaseExpiresAt!.getTime()).toBe(before.getTime() + 40_000);
  });

  test("that are sent again count once", async () => {
    const { placed, host } = await opened();
    const all = [
      host.running(),
      host.log(Buffer.from("one\n")),
      host.log(Buffer.from("two\n")),
      host.record({ type: "unit", id: "u1", ms: 5 }),
    ];
    await host.apply(...all);
    expect(await host.apply(...all)).toEqual({ ackSeq: 4 });
    expect(await host.apply(...all.slice(1), host.log(Buffer.from("three\n")))).toEqual({ ackSeq: 5 });
    const chunks = await deps.db.rows(LogChunk, "where t.workload_id = $1 order by t.seq", [placed.workloadId]);
    expect(Buffer.concat(chunks.map((c) => c.bytes)).toString()).toBe("one\ntwo\nthree\n");
    expect(chunks.map((c) => c.seq)).toEqual([1, 2, 3]);
    expect((await deps.db.row(Stage, "where t.id = $1", [placed.stageRunId]))!.completedUnits).toBe(1);
  });

  test("that leave a gap are refused and change nothing", async () => {
    const { host } = await opened();
    const [first, second] = [host.running(), host.log(Buffer.from("x"))];
    expect(await host.apply(second)).toEqual({ gap: 1 });
    expect(await host.apply(first, second)).toEqual({ ackSeq: 2 });
  });

  test("of a generation that was superseded are fenced", async () => {
    const { placed, host } = await opened();
    await host.apply(host.running());
    await deps.db.command((tx) =>
      loseGeneration(tx, { placementId: placed.placementId, trigger: "host_lost", now: deps.clock.now() }),
    );
    expect(await host.apply(host.log(Buffer.from("late")))).toMatchObject({ refused: "fenced" });
    expect((await placement(placed.placementId)).logBytes).toBe(0);
  });
});

describe("how a run ends", () => {
  const cases: [
    string,
    Partial<ExitRecord>,
    { status: string; reason: string | null; exitCode: number | null; signal?: string | null },
  ][] = [
    ["a code other than zero", { code: 3 }, { status: "failed", reason: "exit_nonzero", exitCode: 3 }],
    [
      "a signal",
      { code: null, signal: "SIGSEGV" },
      { status: "failed", reason: "signalled", exitCode: 139, signal: "SIGSEGV" },
    ],
    [
      "lack of memory",
      { code: null, signal: "SIGKILL", oom: true },
      { status: "failed", reason: "oom", exitCode: 137 },
    ],
    ["lack of memory with a code", { code: 137, oom: true }, { status: "failed", reason: "oom", exitCode: 137 }],
    [
      "a command that is not there",
      { code: null, startFailure: { kind: "not_found", message: "no such file" }, ranMs: 0 },
      { status: "failed", reason: "start_failed", exitCode: null },
    ],
    [
      "the deadline",
      { code: null, signal: "SIGKILL", killedBy: "deadline" },
      { status: "failed", reason: "deadline_exceeded", exitCode: 137 },
    ],
    [
      "a cancel",
      { code: null, signal: "SIGTERM", killedBy: "cancel" },
      { status: "cancelled", reason: "cancelled", exitCode: 143 },
    ],
    [
      "a full disk",
      { code: null, signal: "SIGKILL", killedBy: "disk" },
      { status: "failed", reason: "disk_full", exitCode: 137 },
    ],
  ];
  test.each(cases)("%s is told as what it is", async (_, exit, expected) => {
    const { placed, host } = await opened();
    if (!exit.startFailure) await host.apply(host.running());
    await host.apply(host.exit(exit), host.end());
    expect(await workload(placed.workloadId)).toMatchObject(expected);
  });

  const outOfFunds = { code: null, signal: "SIGKILL", killedBy: "funding" } as const;

  test("the end of the money is told as what it is when nothing more may be spent", async () => {
    const { placed, host } = await opened({ maxCostMicros: 1834n, heldMicros: 1834n });
    await host.apply(host.running(), host.exit(outOfFunds), host.end());
    const end = { status: "failed", reason: "budget_exhausted", exitCode: 137 };
    expect(await workload(placed.workloadId)).toMatchObject(end);
  });

  test("funded time that ran out while the platform was away costs a generation, not the workload", async () => {
    const { placed, host } = await opened();
    await host.apply(host.running(), host.exit(outOfFunds), host.end());
    expect(await workload(placed.workloadId)).toMatchObject({ status: "recovering", reason: null });
    expect(await placement(placed.placementId)).toMatchObject({
      outcome: "lost",
      interruptTrigger: "platform_restart",
    });
  });

  test("a command that succeeds without its declared output fails as output_invalid", async () => {
    const { placed, host } = await opened();
    await host.apply(
      host.running(),
      host.exit(),
      host.record({ type: "output_failed", name: "model", reason: "no such file" }),
      host.end(),
    );
    expect(await workload(placed.workloadId)).toMatchObject({ status: "failed", reason: "output_invalid" });
  });

  test("a host that shut down is another generation, and none when the workload does not resume", async () => {
    const resuming = await opened();
    await resuming.host.apply(
      resuming.host.running(),
      resuming.host.exit({ code: null, killedBy: "host_shutdown" }),
      resuming.host.end(),
    );
    expect(await workload(resuming.placed.workloadId)).toMatchObject({ status: "recovering" });
    const not = await opened({ spec: { resumeOnInterruption: false } });
    await not.host.apply(not.host.running(), not.host.exit({ code: null, killedBy: "host_shutdown" }), not.host.end());
    expect(await workload(not.placed.workloadId)).toMatchObject({ status: "failed", reason: "recovery_disabled" });
  });
});

describe("a session", () => {
  test("is given for the right token only, again until the first record, and never after it", async () => {
    const placed = await insertPlaced(deps.db, deps.clock.now());
    const open = (token: string) => openSession(deps, { orderId: placed.orderId, token, protocol: 1 });
    expect(await open("wrong")).toMatchObject({ refused: "bad_token" });
    const first = await open(placed.token);
    const second = await open(placed.token);
    if ("refused" in first || "refused" in second) throw new Error("refused");
    expect(await resumeSession(deps, { orderId: placed.orderId, session: first.token })).toMatchObject({
      refused: "fenced",
    });
    const host = new MiniatureHost(deps, second.session);
    await host.apply(host.running());
    expect(await open(placed.token)).toMatchObject({ refused: "bad_token" });
    expect(await resumeSession(deps, { orderId: placed.orderId, session: second.token })).toMatchObject({ ackSeq: 1 });
    expect(await openSession(deps, { orderId: "ord_unknown", token: "x", protocol: 1 })).toMatchObject({
      refused: "unknown",
    });
  });

  test("whose secrets can never be read again fails its workload instead of asking for ever", async () => {
    const unreadable = refusals({ secret_unreadable: [409, "The key is gone.", "Write it again."] }).secret_unreadable;
    const blind = { ...deps, secrets: { reveal: () => Promise.reject(new Refused(unreadable)) } };
    const placed = await insertPlaced(deps.db, deps.clock.now(), { spec: { secretEnv: { NODUS_SECRET_A: "A" } } });
    const answer = await openSession(blind, { orderId: placed.orderId, token: placed.token, protocol: 1 });
    expect(answer).toMatchObject({ refused: "fenced", message: "The key is gone." });
    const end = { status: "failed", reason: "input_unavailable", message: "The key is gone." };
    expect(await workload(placed.workloadId)).toMatchObject(end);
  });

  test("hears of a stop in its next heartbeat", async () => {
    const { placed, host } = await opened();
    await host.apply(host.running());
    expect(await deps.db.command((tx) => requestStop(tx, placed.workloadId, "cancel", deps.clock.now()))).toBe("asked");
    expect(await beat(deps, host.session)).toMatchObject({ want: "cancel" });
  });

  test("is paid for window by window, up to the workload's own limit and not beyond", async () => {
    const { placed, host } = await opened({ maxCostMicros: 4_000n });
    await host.apply(host.running());
    const fundedAfter: (number | null)[] = [];
    for (let s = 0; s < 180; s += 10) {
      await deps.clock.advance(10_000);
      const allowance = await beat(deps, host.session);
      if ("refused" in allowance) throw new Error(allowance.message);
      fundedAfter.push(allowance.fundedRunMs);
    }
    const { heldMicros } = await workload(placed.workloadId);
    expect(heldMicros).toBe(4_000n);
    expect((await account()).heldMicros).toBe(4_000n);
    expect(fundedAfter.at(-1)).toBeLessThan(131_000);
    expect(fundedAfter.at(-1)).toBeGreaterThan(130_000);
    expect((await events(placed.workloadId)).filter((t) => t === "workload.budget_warning")).toHaveLength(3);
  });
});
