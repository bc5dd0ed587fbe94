import { expect, test } from "vitest";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { LockedRows } from "./locked-rows.ts";

const START = Date.parse("2026-03-01T00:00:00Z");
const after = (ms: number) => new Date(START + ms);
const { busyStageMs, heldStageMs, heldTeamForgottenMs } = LIMITS;

test("a row is held when its holder is the one that was seen before, and busy otherwise", () => {
  const rows = new LockedRows();
  const found = (holder: string, ms: number, id = "team_a") => rows.leaveAloneMs({ id, holder }, after(ms));
  expect(found("7", 0)).toBe(busyStageMs);
  expect(found("8", 250)).toBe(busyStageMs);
  expect(found("8", 250)).toBe(busyStageMs);
  expect(found("8", 250, "team_b")).toBe(busyStageMs);
  expect(found("8", 500)).toBe(heldStageMs);
  expect(found("8", 2_500)).toBe(heldStageMs);
  expect(found("9", 4_500)).toBe(busyStageMs);
});

test("a row that was let go of before anybody saw by whom is busy each time", () => {
  const rows = new LockedRows();
  for (const ms of [0, 250, 500]) expect(rows.leaveAloneMs({ id: "team_a", holder: "0" }, after(ms))).toBe(busyStageMs);
});

test("what was not found locked for long is forgotten, also when the clock was set back", () => {
  for (const ms of [heldTeamForgottenMs + 1, -heldTeamForgottenMs - 1]) {
    const rows = new LockedRows();
    rows.leaveAloneMs({ id: "team_a", holder: "7" }, after(0));
    expect(rows.leaveAloneMs({ id: "team_a", holder: "7" }, after(ms))).toBe(busyStageMs);
  }
});
