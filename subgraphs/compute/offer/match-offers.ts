import { compareText } from "../../../infra/kernel/compare-text.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { Micros } from "../../../infra/kernel/micros.ts";
import { microsFor } from "../ledger/price.ts";
import type { RejectedOffers } from "../placement/placement.entity.ts";
import type { StageSpec } from "../stage/stage.entity.ts";
import type { Offer } from "./offer.entity.ts";
import { type NeedDefaults, type ResourceNeed, resourceNeed } from "./resource-need.ts";

/**
 * Why an offer is passed over, from what can never fit to what only fails just now: an offer is counted under the first
 * that applies, and the last one that any offer got as far as tells what a stage waits for.
 */
export const REJECTIONS = [
  "withdrawn",
  "pool",
  "compute_class",
  "gpu_family",
  "gpu_count",
  "device_memory",
  "vcpus",
  "memory",
  "disk",
  "region",
  "not_isolated",
  "price",
  "silent",
  "quarantined",
] as const;
export type Rejection = (typeof REJECTIONS)[number];

/** What besides the stage decides about offers. */
export interface MatchContext {
  now: Date;
  tenantId: string;
  /** A stage that names no accelerator may run on a CPU offer when none of its class fits. */
  cpuFallback: boolean;
  defaults: NeedDefaults;
  /** Most that the first window may cost; null for no limit. */
  budget: { micros: Micros; windowMs: number; feeBasisPoints: number } | null;
  /** Suppliers that have not answered for too long: their offers say nothing about now. */
  silentSuppliers?: ReadonlySet<string>;
  /** Silence and quarantine pass: for the question what a stage would cost, not where it goes now. */
  patient?: boolean;
  /** Offers that did not boot for this stage before: taken again only when no other is left. */
  failedOfferIds?: readonly string[];
  /**
   * What running the stage on an offer has been measured to cost. Used only when every eligible offer has a figure;
   * nothing measures it yet.
   */
  measuredCost?: (offer: Offer) => Micros | null;
}

/** An offer that fits. */
export interface RankedOffer {
  offer: Offer;
  need: ResourceNeed;
  /** The CPU stands in for an accelerator that nobody named. */
  cpuFallback: boolean;
}

export interface Match {
  /** Best first. */
  ranked: RankedOffer[];
  rejected: RejectedOffers;
  /** The rejection that came closest to a match; null when no offer was passed over. */
  nearest: Rejection | null;
}

/**
 * Which offers a stage may run on, best first. Pure, and the order of `offers` does not matter.
 *
 * A named GPU family is never substituted, its memory is a separate demand, and the count is exact. Order: offers that
 * did not fail this stage before; private capacity when placement was left open; accelerators before a CPU that stands
 * in; then measured cost where all have it, otherwise offers without a recent failed boot, then the hourly price; then
 * fewest devices and the sku.
 */
export function matchOffers(spec: StageSpec, offers: readonly Offer[], context: MatchContext): Match {
  const eligible: Candidate[] = [];
  const rejected = new Rejections();
  const failed = new Set(context.failedOfferIds);
  for (const offer of offers) {
    if (offer.tenantId !== null && offer.tenantId !== context.tenantId) continue; // not theirs to know of
    const standsIn = cpuStandsIn(spec, offer, context);
    const need = resourceNeed(spec, offer, context.defaults);
    const reason = rejection(spec, offer, need, standsIn, context);
    if (reason) rejected.add(offer, reason);
    else eligible.push(candidate(spec, offer, need, standsIn, failed.has(offer.id), context));
  }
  const measured = eligible.every((c) => c.measured !== null) && eligible.length > 0;
  eligible.sort((a, b) => compare(a, b, measured));
  return { ranked: eligible.map((c) => c.ranked), rejected: rejected.summary(), nearest: rejected.nearest };
}

function cpuStandsIn(spec: StageSpec, offer: Offer, context: MatchContext): boolean {
  return (
    context.cpuFallback &&
    offer.computeClass === "vm" &&
    spec.computeClass === "accelerator" &&
    spec.computeClassDefaulted &&
    spec.gpu === null &&
    spec.gpuCount <= 1 // whoever asks for several devices means devices
  );
}

function rejection(
  spec: StageSpec,
  offer: Offer,
  need: ResourceNeed,
  standsIn: boolean,
  context: MatchContext,
): Rejection | null {
  if (offer.withdrawnAt) return "withdrawn";
  if (!inReach(spec.placement, offer.poolId)) return "pool";
  if (!standsIn) {
    if (offer.computeClass !== spec.computeClass) return "compute_class";
    if (spec.computeClass === "accelerator") {
      if (spec.gpu !== null && offer.accelerator !== spec.gpu) return "gpu_family";
      if (offer.gpuCount !== Math.max(1, spec.gpuCount)) return "gpu_count";
      if (offer.deviceMemoryGb < spec.deviceMemoryGb) return "device_memory";
    }
  }
  if (offer.vcpus * 1000 < need.cpuMillis) return "vcpus";
  if (offer.hostMemoryGb * 1024 < need.memoryMb) return "memory";
  if (offer.diskGb < spec.diskGb) return "disk";
  if (spec.regions.length > 0 && !spec.regions.includes(offer.region)) return "region";
  if (spec.needsIsolation && !offer.isolated) return "not_isolated";
  if (context.budget && windowCost(offer, context.budget) > context.budget.micros) return "price";
  if (context.patient) return null;
  if (context.silentSuppliers?.has(offer.supplier)) return "silent";
  if (offer.quarantinedUntil && offer.quarantinedUntil > context.now) return "quarantined";
  return null;
}

function inReach(placement: StageSpec["placement"], poolId: string | null): boolean {
  switch (placement.kind) {
    case "any":
      return true;
    case "market":
      return poolId === null;
    case "pool":
      return poolId === placement.poolId;
  }
}

function windowCost(offer: Offer, budget: NonNullable<MatchContext["budget"]>): Micros {
  const price = { rateMicrosPerHour: offer.rateMicrosPerHour, feeBasisPoints: budget.feeBasisPoints };
  return microsFor(price, budget.windowMs);
}

interface Candidate {
  ranked: RankedOffer;
  /** Lower is better. */
  tier: number;
  failedRecently: boolean;
  rate: number;
  measured: Micros | null;
}

function candidate(
  spec: StageSpec,
  offer: Offer,
  need: ResourceNeed,
  standsIn: boolean,
  failedThisStage: boolean,
  context: MatchContext,
): Candidate {
  const foreign = spec.placement.kind === "any" && offer.poolId === null;
  return {
    ranked: { offer, need, cpuFallback: standsIn },
    tier: (failedThisStage ? 4 : 0) + (foreign ? 2 : 0) + (standsIn ? 1 : 0),
    failedRecently: failedRecently(offer, context.now),
    rate: Number(offer.rateMicrosPerHour), // exact: nobody asks for 2^53 micros an hour
    measured: context.measuredCost?.(offer) ?? null,
  };
}

/** A quarantine that ended leaves the offer behind its equals for a while. */
function failedRecently(offer: Offer, now: Date): boolean {
  if (offer.failuresInRow === 0 || !offer.quarantinedUntil) return false;
  return now.getTime() - offer.quarantinedUntil.getTime() < LIMITS.failedBootMemoryMs;
}

function compare(a: Candidate, b: Candidate, measured: boolean): number {
  if (a.tier !== b.tier) return a.tier - b.tier;
  if (measured) {
    if (a.measured !== b.measured) return a.measured! < b.measured! ? -1 : 1;
  } else if (a.failedRecently !== b.failedRecently) return a.failedRecently ? 1 : -1;
  if (a.rate !== b.rate) return a.rate - b.rate;
  const x = a.ranked.offer;
  const y = b.ranked.offer;
  if (x.gpuCount !== y.gpuCount) return x.gpuCount - y.gpuCount;
  return compareText(x.sku, y.sku) || compareText(x.region, y.region) || compareText(x.id, y.id);
}

/** Counts by reason, and examples chosen so that the order of the offers does not show. */
class Rejections {
  readonly #counts = new Map<Rejection, number>();
  readonly #examples: Example[] = [];

  add(offer: Offer, reason: Rejection): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    const example = { sku: offer.sku, region: offer.region, reason };
    const last = this.#examples.at(-1);
    const full = this.#examples.length === LIMITS.rejectedOfferExamples;
    if (full && last && byNearness(last, example) <= 0) return;
    if (full) this.#examples.pop();
    let at = this.#examples.length;
    while (at > 0 && byNearness(this.#examples[at - 1]!, example) > 0) at--;
    this.#examples.splice(at, 0, example);
  }

  get nearest(): Rejection | null {
    return REJECTIONS.findLast((reason) => this.#counts.has(reason)) ?? null;
  }

  summary(): RejectedOffers {
    const counts = Object.fromEntries(
      REJECTIONS.flatMap((r) => (this.#counts.has(r) ? [[r, this.#counts.get(r)!]] : [])),
    );
    return { counts, examples: this.#examples };
  }
}

type Example = { sku: string; region: string; reason: Rejection };
const NEARNESS = new Map(REJECTIONS.map((reason, i) => [reason, i]));

/** Those that came closest to a match first, as they help most. */
function byNearness(a: Example, b: Example): number {
  if (a.reason !== b.reason) return NEARNESS.get(b.reason)! - NEARNESS.get(a.reason)!;
  return compareText(a.sku, b.sku) || compareText(a.region, b.region);
}
