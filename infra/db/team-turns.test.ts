import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LIMITS } from "../kernel/limits.ts";
import { TeamTurns } from "./team-turns.ts";
import { TeamBusy } from "./unavailable.ts";

const LOCK_HELD = Object.assign(new Error("canceling statement due to lock timeout"), { code: "55P03" });
const WAITS = { comesAgain: false };
let turns: TeamTurns;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  turns = new TeamTurns(8);
});
afterEach(() => vi.useRealTimers());

/** A command that runs until it is ended. */
function command(team: string, bounds = WAITS) {
  const work = Promise.withResolvers<void>();
  const seen = { began: false, end: "" };
  turns
    .pass(team, bounds, () => {
      seen.began = true;
      return work.promise;
    })
    .then(
      () => (seen.end = "done"),
      (error: Error) => (seen.end = error.name),
    );
  const ended = (end: () => void) => {
    end();
    return new Promise<void>((resolve) => setImmediate(resolve));
  };
  return {
    seen,
    finish: () => ended(work.resolve),
    fail: () => ended(() => work.reject(LOCK_HELD)),
  };
}

const commands = (team: string, count: number) => Array.from({ length: count }, () => command(team));
const begun = (all: { seen: { began: boolean } }[]) => all.filter(({ seen }) => seen.began).length;

test("a team's commands have half of the connections as long as others leave them, and begin in the order in which they came", async () => {
  const mine = commands("a", 6);
  expect(mine.map(({ seen }) => seen.began)).toEqual([true, true, true, true, false, false]);
  await mine[2]!.finish();
  expect(mine.map(({ seen }) => seen.began)).toEqual([true, true, true, true, true, false]);
  const others = commands("b", 4);
  expect(begun(others)).toBe(2);
  await mine[0]!.finish();
  expect([begun(mine), begun(others)]).toEqual([5, 3]);
});

test("a team that has much to do waits as long as for a connection, is told so then, and nothing of it was begun", async () => {
  const mine = commands("a", 5);
  await vi.advanceTimersByTimeAsync(LIMITS.databaseConnectionWaitMs - 1);
  expect(mine.map(({ seen }) => seen.end)).toEqual(["", "", "", "", ""]);
  await vi.advanceTimersByTimeAsync(1);
  expect(mine.map(({ seen }) => seen.end)).toEqual(["", "", "", "", "TeamBusy"]);
  await mine[0]!.finish();
  expect(mine[4]!.seen.began).toBe(false);
  expect(begun([command("a")])).toBe(1);
});

test("once something of the team is held, who waits for a turn is told so soon", async () => {
  const mine = commands("a", 6);
  await vi.advanceTimersByTimeAsync(LIMITS.commandTurnMs);
  await mine[0]!.fail();
  await vi.advanceTimersByTimeAsync(LIMITS.commandTurnMs);
  expect(mine.map(({ seen }) => seen.end)).toEqual(["Error", "", "", "", "TeamBusy", "TeamBusy"]);
});

test("after a wait in vain the team goes one at a time, until a while later some of them do not wait in vain", async () => {
  const first = command("a");
  await first.fail();
  expect(first.seen.end).toBe("Error");
  expect(turns.isHeld("a")).toBe(true);
  const probes = commands("a", 3);
  expect(begun(probes)).toBe(1);
  await probes[0]!.finish();
  expect(begun(probes)).toBe(2);
  expect(turns.isHeld("a")).toBe(true);
  await vi.advanceTimersByTimeAsync(LIMITS.heldTeamMs);
  const later = commands("a", 2);
  expect(begun(later)).toBe(0);
  await probes[1]!.finish();
  expect(turns.isHeld("a")).toBe(true);
  expect(begun(later)).toBe(1);
  await vi.advanceTimersByTimeAsync(LIMITS.requestLockWaitMs);
  await later[0]!.finish();
  expect(turns.isHeld("a")).toBe(false);
  expect(begun(commands("a", 9))).toBe(4);
});

test("what is held for long takes one connection at a time of its team's, however often it is tried", async () => {
  await command("a").fail();
  for (let round = 0; round < 5; round++) {
    await vi.advanceTimersByTimeAsync(LIMITS.heldTeamMs);
    const jobs = Array.from({ length: 6 }, () => command("a", { comesAgain: true }));
    await vi.advanceTimersByTimeAsync(0);
    expect(jobs.map(({ seen }) => seen.end)).toEqual(["", ...Array(5).fill(TeamBusy.name)]);
    await jobs[0]!.fail();
  }
});

test("a team that asks for nothing any more is forgotten once another one's wait is in vain", async () => {
  await command("a").fail();
  await vi.advanceTimersByTimeAsync(LIMITS.heldTeamMs + LIMITS.heldTeamForgottenMs + 1);
  expect(turns.isHeld("a")).toBe(true);
  await command("b").fail();
  expect([turns.isHeld("a"), turns.isHeld("b")]).toEqual([false, true]);
});

test("teams of which something is held have a quarter of the connections together, however many they are", async () => {
  const teams = Array.from({ length: 6 }, (_, i) => `held ${i}`);
  for (const team of teams) await command(team).fail();
  const probes = teams.map((team) => command(team));
  expect(begun(probes)).toBe(2);
  expect(begun(commands("another", 4))).toBe(3);
  await probes[0]!.finish();
  expect(begun(probes)).toBe(3);
});

test("what comes again by itself does not wait where something is held", async () => {
  await command("a").fail();
  const job = command("a", { comesAgain: true });
  await vi.advanceTimersByTimeAsync(0);
  expect(job.seen).toEqual({ began: false, end: TeamBusy.name });
  expect(begun([command("b", { comesAgain: true })])).toBe(1);
});
