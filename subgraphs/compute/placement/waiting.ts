import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { HoldRefusal } from "../ledger/ledger.commands.ts";
import type { Rejection } from "../offer/match-offers.ts";

/** Why a stage waits for capacity. */
export type WaitingReason =
  | "no_matching_offer"
  | "no_capacity"
  | "offers_quarantined"
  | "supplier_silent"
  | "region_not_available"
  | "isolated_execution_unavailable"
  | HoldRefusal;

/** What a stage without any eligible offer waits for, by the rejection that came closest to a match. */
export function waitingReasonOf(nearest: Rejection | null): WaitingReason {
  switch (nearest) {
    case "quarantined":
      return "offers_quarantined";
    case "silent":
      return "supplier_silent";
    case "price":
      return "workload_budget";
    case "not_isolated":
      return "isolated_execution_unavailable";
    case "region":
      return "region_not_available";
    default:
      return "no_matching_offer";
  }
}

const SHORTEST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** Waits are spread by up to a quarter around their length. */
const SPREAD = 0.25;

/** No next try is written farther ahead than this. One that lies beyond it is from before the wall clock was set back. */
export const FARTHEST_TRY_MS = LONGEST_WAIT_MS * (1 + SPREAD);

/** A waiting reason that an event told of. */
export interface ToldReason {
  reason: string;
  at: Date;
}

/**
 * Whether a reason is worth an event: when it is not what the latest event said, and was not told within
 * `LIMITS.waitingEventMs`. A stage that swings between two reasons would otherwise fill its history with each try.
 */
export function worthTelling(reason: WaitingReason, told: readonly ToldReason[], now: Date): boolean {
  const latest = told.reduce<ToldReason | null>((a, b) => (a && a.at > b.at ? a : b), null);
  if (latest?.reason === reason) return false;
  return told.every((t) => t.reason !== reason || Math.abs(now.getTime() - t.at.getTime()) >= LIMITS.waitingEventMs);
}

/**
 * When to look again: after half of the time that it has waited so far, from a second to half a minute, spread so that
 * stages do not come back in step. Freed capacity wakes it earlier.
 */
export function nextTry(now: Date, waitingSince: Date | null, random: () => number): Date {
  const waitedMs = waitingSince ? now.getTime() - waitingSince.getTime() : 0;
  const waitMs = Math.min(Math.max(waitedMs / 2, SHORTEST_WAIT_MS), LONGEST_WAIT_MS);
  return new Date(now.getTime() + Math.round(waitMs * (1 - SPREAD + random() * 2 * SPREAD)));
}
