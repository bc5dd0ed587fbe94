import { columnName } from "../../../infra/db/columns.ts";
import type { Database, Tx } from "../../../infra/db/database.ts";
import { insertRows } from "../../../infra/db/insert-rows.ts";
import type { CapacityFact, OfferFact } from "../../../infra/drivers/driver.ts";
import { compareText } from "../../../infra/kernel/compare-text.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { topics } from "../topics.ts";
import { Capacity, Offer, Supplier } from "./offer.entity.ts";

/** What a look at a supplier changed. */
export interface OfferChanges {
  /** Offers that are new, back, or different. */
  offered: number;
  withdrawn: number;
  /** The supplier's version afterwards; equal versions mean that nothing of its offers changed in between. */
  version: number;
}

/**
 * Makes the tables say what a supplier says that it offers. Totals follow the supplier, what is reserved is never
 * touched; an offer that is no longer made is withdrawn and keeps its id and record for when it comes back. Wakes
 * waiting stages when there is more than before.
 */
export function syncOffers(
  db: Database,
  supplier: string,
  facts: readonly OfferFact[],
  now: Date,
): Promise<OfferChanges> {
  return db.command(async (tx) => {
    const version = await seen(tx, supplier, now);
    const more = await syncCapacities(tx, supplier, facts, now);
    const before = await tx.rows(Offer, "where t.supplier = $1", [supplier]);
    const known = new Map(before.map((o) => [identity(o), o]));
    const next = facts.map((fact) => offerRow(supplier, fact, known.get(identity(fact)), version + 1, now));
    const changed = next.filter((row) => !same(row, known.get(identity(row))));
    const offered = new Set(facts.map(identity));
    const lost = before.filter((o) => !o.withdrawnAt && !offered.has(identity(o))).map((o) => o.id);
    if (changed.length + lost.length === 0 && !more) return { offered: 0, withdrawn: 0, version };
    await insertRows(tx, Offer, changed, UPDATE_OFFER);
    await withdraw(tx, lost, version + 1, now);
    await tx.sql("update compute.supplier set version = version + 1 where id = $1", [supplier]);
    if (more || changed.length > 0) tx.wake(topics.capacity);
    return { offered: changed.length, withdrawn: lost.length, version: version + 1 };
  });
}

/** The supplier answered, with what it answered before. */
export async function confirmOffers(db: Database, supplier: string, now: Date): Promise<number> {
  return db.command((tx) => seen(tx, supplier, now));
}

/** Nobody may be sent to a supplier that does not answer. Returns how many offers were withdrawn. */
export function withdrawOffers(db: Database, supplier: string, now: Date): Promise<number> {
  return db.command(async (tx) => {
    const [row] = await tx.sql<{ version: number }>(
      "update compute.supplier set version = version + 1 where id = $1 returning version",
      [supplier],
    );
    const offers = await tx.rows(Offer, "where t.supplier = $1 and t.withdrawn_at is null", [supplier]);
    await withdraw(
      tx,
      offers.map((o) => o.id),
      row?.version ?? 0,
      now,
    );
    return offers.length;
  });
}

/** Takes the supplier's row, which orders all changes of its offers. */
async function seen(tx: Tx, supplier: string, now: Date): Promise<number> {
  const [row] = await tx.sql<Pick<Supplier, "version">>(
    `insert into compute.supplier (id, version, seen_at) values ($1, 0, $2)
     on conflict (id) do update set seen_at = excluded.seen_at returning version`,
    [supplier, now],
  );
  return row!.version;
}

async function withdraw(tx: Tx, offerIds: string[], version: number, now: Date): Promise<void> {
  if (offerIds.length === 0) return;
  await tx.sql("update compute.offer set withdrawn_at = $2, version = $3 where id = any($1)", [offerIds, now, version]);
}

/** True when some capacity is new or grew. */
async function syncCapacities(tx: Tx, supplier: string, facts: readonly OfferFact[], now: Date): Promise<boolean> {
  const wanted = new Map(facts.map(({ capacity }) => [capacityId(supplier, capacity), capacity]));
  const before = await tx.rows(Capacity, "where t.supplier = $1", [supplier]);
  const known = new Map(before.map((c) => [c.id, c]));
  // In the order in which claims take them.
  const changed = [...wanted]
    .filter(([id, fact]) => SIZES.some((size) => known.get(id)?.[size] !== fact[size]))
    .toSorted(([a], [b]) => compareText(a, b));
  await insertRows(
    tx,
    Capacity,
    changed.map(([id, { cpuMillis, memoryMb, gpus, slots }]) => ({
      id,
      supplier,
      ...{ cpuMillis, memoryMb, gpus, slots },
      ...{ cpuMillisUsed: 0, memoryMbUsed: 0, gpusUsed: 0, slotsUsed: 0 },
      seenAt: now,
    })),
    `on conflict (id) do update set cpu_millis = excluded.cpu_millis, memory_mb = excluded.memory_mb, gpus = excluded.gpus,
       slots = excluded.slots, seen_at = excluded.seen_at`,
  );
  return changed.some(([id, fact]) => SIZES.some((size) => fact[size] > (known.get(id)?.[size] ?? 0)));
}

const SIZES = ["cpuMillis", "memoryMb", "gpus", "slots"] as const;

function capacityId(supplier: string, capacity: CapacityFact): string {
  return `${supplier}/${capacity.key}`;
}

function identity(offer: { sku: string; region: string }): string {
  return `${offer.region}/${offer.sku}`;
}

/** What a supplier says of an offer; the rest of the row is ours. */
const SAID = [
  "capacityId",
  "computeClass",
  "vcpus",
  "hostMemoryGb",
  "diskGb",
  "networkGbps",
  "accelerator",
  "gpuCount",
  "deviceMemoryGb",
  "rateMicrosPerHour",
  "interruptible",
  "simulated",
  "isolated",
  "note",
  "expectedBootSeconds",
  "poolId",
  "tenantId",
  "withdrawnAt",
] as const satisfies readonly (keyof Offer)[];

const UPDATE_OFFER = `on conflict (supplier, sku, region) do update set ${[...SAID, "seenAt", "version"]
  .map(columnName)
  .map((c) => `${c} = excluded.${c}`)
  .join(", ")}`;

function offerRow(supplier: string, fact: OfferFact, known: Offer | undefined, version: number, now: Date): Offer {
  const { capacity, ...said } = fact;
  return {
    id: known?.id ?? newId("offer", now),
    supplier,
    ...said,
    capacityId: capacityId(supplier, capacity),
    seenAt: now,
    withdrawnAt: null,
    quarantinedUntil: known?.quarantinedUntil ?? null,
    failuresInRow: known?.failuresInRow ?? 0,
    version,
  };
}

function same(row: Offer, known: Offer | undefined): boolean {
  return known !== undefined && SAID.every((property) => row[property] === known[property]);
}
