import { fromUsdNumber, type Micros, toUsd } from "../../../../infra/kernel/micros.ts";
import type { WorkloadPayload } from "../workload.payload.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import { refuse } from "./refuse.ts";

/** Amounts above this lose digits on the wire: 2^53 micro-dollars. */
const MOST_MICROS = 2n ** 53n;

/** RFC 3339 with an offset. `Date` takes more than that, and rolls impossible days over. */
const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

export interface ResolvedOutcome {
  /** As it is answered, in dollars; absent for no limit. */
  payload: WorkloadPayload["outcome"];
  maxCostMicros: Micros | null;
  completeBy: Date | null;
}

/** The limits on money and time. Less than a micro-dollar cannot be spent, so it is cut off. */
export function checkOutcome(given: WorkloadPayload["outcome"], now: Date): ResolvedOutcome {
  const maxCostMicros = given.max_cost_usd === undefined ? null : maxCost(given.max_cost_usd);
  const completeBy = given.complete_by ? deadline(given.complete_by, now) : null;
  return {
    payload: {
      ...(maxCostMicros === null ? {} : { max_cost_usd: toUsd(maxCostMicros) }),
      ...(completeBy === null ? {} : { complete_by: completeBy.toISOString() }),
    },
    maxCostMicros,
    completeBy,
  };
}

function maxCost(usd: number): Micros {
  const micros = fromUsdNumber(usd);
  if (micros === null || micros <= 0n || micros > MOST_MICROS)
    refuse(WORKLOAD.invalid_max_cost, "/outcome/max_cost_usd");
  return micros;
}

function deadline(text: string, now: Date): Date {
  const field = "/outcome/complete_by";
  const at = instant(text);
  if (at === null) refuse(WORKLOAD.invalid_complete_by, field, "outcome.complete_by is no RFC 3339 time.");
  if (at <= now) refuse(WORKLOAD.invalid_complete_by, field, "outcome.complete_by has passed.");
  return at;
}

/** The instant that an RFC 3339 text names; null when it names none. */
export function instant(text: string): Date | null {
  const match = RFC3339.exec(text);
  if (!match) return null;
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const lastDay = month >= 1 && month <= 12 ? new Date(Date.UTC(year, month, 0)).getUTCDate() : 0;
  if (day < 1 || day > lastDay || hour > 23 || minute > 59 || second > 59) return null;
  const at = new Date(text.replace(" ", "T").toUpperCase());
  return Number.isNaN(at.getTime()) ? null : at;
}
