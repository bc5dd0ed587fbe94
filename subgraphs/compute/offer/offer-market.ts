import type { Queryer } from "../../../infra/db/database.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { StageSpec } from "../stage/stage.entity.ts";
import { type Match, type MatchContext, matchOffers, type RankedOffer } from "./match-offers.ts";
import { Offer } from "./offer.entity.ts";
import { RememberedMatches } from "./remembered-matches.ts";

/** All offers as of one moment. */
export interface MarketView {
  /** Cheapest first. */
  offers: readonly Offer[];
  /** Suppliers that have not answered for `LIMITS.supplierSilentMs`. */
  silentSuppliers: ReadonlySet<string>;
  /** What stages were matched with on just this view. */
  matches: RememberedMatches;
}

interface Known {
  version: number;
  offers: Map<string, Offer>;
}

/**
 * A process's copy of the offers, brought up to date by version: looking costs one short statement, and only rows that
 * changed are read. It may be a moment old; what keeps capacity from being given out twice is the reservation.
 */
export class OfferMarket {
  readonly #suppliers = new Map<string, Known>();
  #sorted: readonly Offer[] | null = null;
  #matches: RememberedMatches | null = null;

  /** The offers now. `q` must not have changed offers in a transaction that may yet be undone. */
  async view(q: Queryer, now: Date): Promise<MarketView> {
    const suppliers = await q.sql<{ id: string; version: number; silent: boolean }>(
      "select id, version, seen_at < $1 as silent from compute.supplier",
      [new Date(now.getTime() - LIMITS.supplierSilentMs)],
    );
    for (const supplier of suppliers) await this.#catchUp(q, supplier.id, supplier.version, now);
    const silentSuppliers = new Set(suppliers.flatMap((s) => (s.silent ? [s.id] : [])));
    this.#sorted ??= this.#all();
    const offers = this.#sorted;
    if (!this.#matches?.holds(silentSuppliers, now))
      this.#matches = new RememberedMatches(offers, silentSuppliers, now);
    return { offers, silentSuppliers, matches: this.#matches };
  }

  async #catchUp(q: Queryer, supplier: string, version: number, now: Date): Promise<void> {
    const known = this.#suppliers.get(supplier) ?? { version: -1, offers: new Map<string, Offer>() };
    if (known.version >= version) return;
    const changed = await q.rows(Offer, "where t.supplier = $1 and t.version > $2 order by t.id", [
      supplier,
      known.version,
    ]);
    const forgetBefore = now.getTime() - WITHDRAWN_SHOWN_MS;
    for (const offer of changed)
      if (offer.version >= (known.offers.get(offer.id)?.version ?? 0)) known.offers.set(offer.id, offer);
    for (const offer of known.offers.values())
      if (offer.withdrawnAt && offer.withdrawnAt.getTime() < forgetBefore) known.offers.delete(offer.id);
    known.version = Math.max(known.version, version);
    this.#suppliers.set(supplier, known);
    this.#sorted = null;
    this.#matches = null;
  }

  /** Cheapest first, so that ranking finds most of its work done. */
  #all(): Offer[] {
    const all = [...this.#suppliers.values()].flatMap((known) => [...known.offers.values()]);
    return all.sort((a, b) => Number(a.rateMicrosPerHour - b.rateMicrosPerHour) || a.gpuCount - b.gpuCount);
  }
}

/** A withdrawn offer is still counted among the rejected for this long. */
const WITHDRAWN_SHOWN_MS = 10 * 60_000;

/** What is known of the price of a stage before it is placed. */
export interface PriceOutlook extends Pick<Match, "nearest"> {
  /** The offer with the lowest hourly price among those that fit; null when none does, and `nearest` tells why. */
  cheapest: RankedOffer | null;
}

/** The cheapest offer that a stage could be placed on, once silence, quarantine and other orders have passed. */
export async function cheapestMatchingOffer(
  market: Pick<OfferMarket, "view">,
  q: Queryer,
  spec: StageSpec,
  context: Pick<MatchContext, "now" | "tenantId" | "cpuFallback" | "defaults">,
): Promise<PriceOutlook> {
  const { offers } = await market.view(q, context.now);
  const { ranked, nearest } = matchOffers(spec, offers, { ...context, budget: null, patient: true });
  const cheapest = ranked.reduce<RankedOffer | null>(
    (best, r) => (best && best.offer.rateMicrosPerHour <= r.offer.rateMicrosPerHour ? best : r),
    null,
  );
  return { cheapest, nearest };
}
