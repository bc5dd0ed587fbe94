import { outboxJob } from "../../../infra/db/outbox.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { superviseBoot } from "../jobs.ts";
import type { Match } from "../offer/match-offers.ts";
import { stageMachine } from "../stage/stage.machine.ts";
import { hashToken, orderToken } from "./order-token.ts";
import type { PlacementDeps } from "./placement-deps.ts";
import type { Granted } from "./seeker.ts";

/** What was granted to a stage, as a row of JSON: its placement, its attempt and their jobs are made of it. */
export type GrantedRow = ReturnType<typeof grantedRow>;

export function grantedRow(deps: PlacementDeps, granted: Granted, rejections: Rejections, now: Date) {
  const { stage, match } = granted;
  const { offer, need } = granted.chosen;
  if (stageMachine.decide(stage.status, "order") !== "starting")
    throw new Error(`stage ${stage.stageRunId} is ${stage.status} and cannot be ordered`);
  const { placement } = stage;
  const reused = placement?.state === "provisioning";
  const orderId = newId("order", now);
  // A supplier that is known to be slow gets the time that it needs.
  const bootMs = Math.max(deps.settings.bootTimeoutMs, 3_000 * offer.expectedBootSeconds);
  const bootDeadlineAt = new Date(now.getTime() + bootMs);
  return {
    ...termsOf(granted, deps.settings.feeBasisPoints),
    /** The generation did not begin to run with an earlier order, and goes on with this one. */
    reused,
    placement_id: reused ? placement.id : newId("placement", now),
    order_id: orderId,
    tenant_id: stage.tenantId,
    workload_id: stage.workload.id,
    stage_run_id: stage.stageRunId,
    stage_id: stage.stageId,
    generation: reused ? stage.generation : stage.generation + 1,
    fence: stage.fence + 1,
    /** Orders of this generation, this one included. */
    attempt: reused ? placement.attempts + 1 : 1,
    supplier: offer.supplier,
    capacity_id: offer.capacityId,
    cpu_millis: need.cpuMillis,
    memory_mb: need.memoryMb,
    gpus: need.gpus,
    token_hash: hashToken(orderToken(deps.runnerKey, orderId)),
    token_expires_at: new Date(now.getTime() + Math.max(LIMITS.bootTokenTtlMs, bootMs)),
    boot_deadline_at: bootDeadlineAt,
    next_check_at: new Date(now.getTime() + LIMITS.launchTimeoutMs + LIMITS.attemptCheckMs),
    /** Which of `rejections`. */
    rejected: rejections.placeOf(match),
    jobs: [outboxJob(superviseBoot, { orderId }, now, bootDeadlineAt)],
  };
}

/** What the stage gets and for how much: columns of a placement that a further order has anew. */
function termsOf({ chosen: { offer, need, cpuFallback }, match, heldMicros }: Granted, feeBasisPoints: number) {
  return {
    offer_id: offer.id,
    sku: offer.sku,
    region: offer.region,
    compute_class: offer.computeClass,
    accelerator: offer.accelerator,
    gpu_count: offer.gpuCount,
    device_memory_gb: offer.deviceMemoryGb,
    vcpus: need.cpuMillis / 1000,
    memory_gb: need.memoryMb / 1024,
    interruptible: offer.interruptible,
    simulated: offer.simulated,
    cpu_fallback: cpuFallback,
    note: offer.note,
    rate_micros_per_hour: offer.rateMicrosPerHour.toString(),
    fee_basis_points: feeBasisPoints,
    held_micros: heldMicros.toString(),
    candidates: match.ranked.length,
  };
}

const TERMS = {
  offer_id: "text",
  sku: "text",
  region: "text",
  compute_class: "text",
  accelerator: "text",
  gpu_count: "int",
  device_memory_gb: "float8",
  vcpus: "float8",
  memory_gb: "float8",
  interruptible: "bool",
  simulated: "bool",
  cpu_fallback: "bool",
  note: "text",
  rate_micros_per_hour: "bigint",
  fee_basis_points: "int",
  held_micros: "bigint",
  candidates: "int",
} as const satisfies Record<keyof ReturnType<typeof termsOf>, string>;

const COLUMNS = {
  ...TERMS,
  reused: "bool",
  placement_id: "text",
  order_id: "text",
  tenant_id: "text",
  workload_id: "text",
  stage_run_id: "text",
  stage_id: "text",
  generation: "int",
  fence: "int",
  attempt: "int",
  supplier: "text",
  capacity_id: "text",
  cpu_millis: "int",
  memory_mb: "int",
  gpus: "int",
  token_hash: "text",
  token_expires_at: "timestamptz",
  boot_deadline_at: "timestamptz",
  next_check_at: "timestamptz",
  rejected: "int",
  jobs: "jsonb",
} as const satisfies Record<keyof GrantedRow, string>;

/** SQL: names of the columns that `termsOf` gives. */
export const TERM_COLUMNS = Object.keys(TERMS);

/** SQL: every member of a granted row with its type, for `jsonb_to_record` and its kin. */
export const GRANTED_COLUMNS = Object.entries(COLUMNS)
  .map(([name, type]) => `${name} ${type}`)
  .join(", ");

/** What matches passed over, each text once: the stages of a batch are often alike, and the texts are long. */
export class Rejections {
  readonly #places = new Map<Match, number>();

  placeOf(match: Match): number {
    const place = this.#places.get(match) ?? this.#places.size;
    this.#places.set(match, place);
    return place;
  }

  /** A JSON array of them. */
  json(): string {
    return `[${[...this.#places.keys()].map(rejectedJson).join()}]`;
  }
}

/** A match is kept for as long as it is true, and nobody changes it. */
const rejectedTexts = new WeakMap<Match, string>();

function rejectedJson(match: Match): string {
  let text = rejectedTexts.get(match);
  if (text === undefined) {
    text = JSON.stringify(match.rejected);
    rejectedTexts.set(match, text);
  }
  return text;
}
