import fc from "fast-check";
import { expect, test } from "vitest";
import { LIMITS } from "../kernel/limits.ts";
import { TeamShares, type Turn } from "./team-shares.ts";

/** As many commands of the team as may begin now. */
function fill(shares: TeamShares, teamId: string): Turn[] {
  const begun: Turn[] = [];
  while (shares.mayStart(teamId)) begun.push(shares.start(teamId));
  return begun;
}

const HELD_MS = LIMITS.heldTeamMs;
const LIFTED_MS = LIMITS.heldTeamMs + LIMITS.requestLockWaitMs;

test("one team has half of the connections, the next ones ever less, and a team that has none finds one", () => {
  const shares = new TeamShares(20);
  expect(["a", "b", "c", "d"].map((team) => fill(shares, team).length)).toEqual([10, 5, 3, 1]);
  expect(shares.mayStart("e")).toBe(true);
});

test("what one team has and asks for again goes to who has less", () => {
  const shares = new TeamShares(20);
  const first = fill(shares, "a");
  fill(shares, "b");
  let begun = 0;
  for (const turn of first) {
    shares.end(turn, false, 0);
    begun += fill(shares, "b").length;
    if (shares.mayStart("a")) shares.start("a");
  }
  expect(begun).toBeGreaterThan(0);
  expect([fill(shares, "a").length, fill(shares, "b").length]).toEqual([0, 0]);
});

test("a held team has one at a time, then twice as many with each that ends well, and at last all", () => {
  const shares = new TeamShares(40);
  shares.end(shares.start("a"), true, 0);
  const passed = (nowMs: number) => {
    const begun = fill(shares, "a");
    for (const turn of begun.slice(1)) shares.end(turn, false, -1);
    shares.end(begun[0]!, false, nowMs);
    return begun.length;
  };
  expect([passed(1), passed(HELD_MS - 1), passed(HELD_MS), passed(HELD_MS)]).toEqual([1, 1, 1, 2]);
  expect([passed(HELD_MS), passed(LIFTED_MS - 1), passed(LIFTED_MS)]).toEqual([4, 5, 5]);
  expect([shares.isHeld("a"), passed(LIFTED_MS)]).toEqual([false, 20]);
});

test("only what began since the last wait in vain says that nothing is held any more", () => {
  const shares = new TeamShares(40);
  const [early, ...others] = fill(shares, "a");
  shares.end(others[0]!, true, 0);
  shares.end(early!, false, LIFTED_MS);
  expect(shares.isHeld("a")).toBe(true);
  for (const turn of others.slice(1)) shares.end(turn, false, LIFTED_MS);
  const late = shares.start("a");
  shares.end(shares.start("a"), true, LIFTED_MS + 1);
  shares.end(late, false, 3 * LIFTED_MS);
  expect(shares.isHeld("a")).toBe(true);
  shares.end(shares.start("a"), false, 3 * LIFTED_MS);
  expect(shares.isHeld("a")).toBe(false);
});

/** What happens next: a team asks to begin, or a running one of it ends. */
const event = fc.record({
  team: fc.constantFrom("a", "b", "c", "d", "e"),
  does: fc.constantFrom("start", "start", "start", "end", "wait in vain"),
  afterMs: fc.nat(LIFTED_MS),
});

test("whatever happens, connections are not given twice, held teams stay in their quarter, and free ones find a place", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.array(event, { maxLength: 300 }), (connections, events) => {
      const shares = new TeamShares(connections);
      const running: Turn[] = [];
      let nowMs = 0;
      for (const { team, does, afterMs } of events) {
        nowMs += afterMs;
        const own = running.findIndex((turn) => turn.teamId === team);
        if (does === "start" && shares.mayStart(team)) running.push(shares.start(team));
        if (does !== "start" && own >= 0) shares.end(running.splice(own, 1)[0]!, does === "wait in vain", nowMs);
        const isFree = running.length < connections;
        expect(running.length).toBeLessThanOrEqual(connections);
        const held = running.filter(({ heldSinceMs }) => heldSinceMs !== null);
        expect(held.length).toBeLessThanOrEqual(Math.max(1, Math.floor(connections / 4)));
        expect(shares.mayStart("newcomer")).toBe(isFree);
        const idle = !running.some((turn) => turn.teamId === team);
        if (idle && !shares.isHeld(team)) expect(shares.mayStart(team)).toBe(isFree);
      }
      for (const turn of running) shares.end(turn, false, nowMs);
      expect(fill(shares, "newcomer")).toHaveLength(Math.ceil(connections / 2));
    }),
  );
});
