import type { Tx } from "../../../infra/db/database.ts";
import type { RankedOffer } from "../offer/match-offers.ts";
import { Capacity } from "../offer/offer.entity.ts";
import { type ResourceNeed, type Room, roomOf, takeRoom } from "../offer/resource-need.ts";
import { holdersOf, type LockedRow } from "./locked-rows.ts";

/** One stage's candidates and, after `reserve`, the one whose capacity it has. */
export interface Seeker {
  ranked: readonly RankedOffer[];
  /** Seekers with the same one have the same candidates and needs: what one could not find no other will. */
  likeness: string;
  chosen: RankedOffer | null;
  /** What somebody else keeps from it, where that is all that it lacks; null for none. */
  heldUpBy: LockedRow | null;
}

/** Tries after another process took what was just seen free. */
const ROUNDS = 5;

/**
 * Gives each seeker the best of its candidates that has room, and reserves it. The choice is made on figures that were
 * just read; what counts is the conditional UPDATE of each capacity, which refuses what no longer fits, and those seekers
 * choose again. Seekers that find nothing are left with `chosen` null, and with `heldUpBy` where a capacity has room that
 * others kept from them. With `passOver` nothing is waited for.
 */
export async function reserve(tx: Tx, seekers: readonly Seeker[], { passOver = false } = {}): Promise<void> {
  const [first] = seekers;
  if (first && seekers.length === 1 && !passOver && (await takeBest(tx, first))) return;
  const rooms = new Map<string, Room>();
  const standing: Standing = { rooms, held: new Set(), missed: new Set(), passOver };
  let open = seekers;
  for (let round = 0; round < ROUNDS && open.length > 0; round++) {
    const hopeless = new Set<string>();
    for (const seeker of open) {
      if (hopeless.has(seeker.likeness)) continue;
      seeker.chosen = await firstWithRoom(tx, rooms, seeker.ranked);
      if (!seeker.chosen) hopeless.add(seeker.likeness);
    }
    open = await reserveChosen(
      tx,
      standing,
      open.filter((s) => s.chosen !== null),
    );
  }
  await nameHolders(tx, seekers, standing.missed);
}

/** Of seekers that got nothing, those for which there would be room in a capacity that others were faster at, or hold. */
async function nameHolders(tx: Tx, seekers: readonly Seeker[], missed: ReadonlySet<string>): Promise<void> {
  const empty = seekers.filter((s) => s.chosen === null);
  if (empty.length === 0 || missed.size === 0) return;
  const ids = [...missed];
  const [capacities, holders] = await Promise.all([
    tx.rows(Capacity, "where t.id = any($1)", [ids]),
    holdersOf(tx, "compute.capacity", ids),
  ]);
  const rooms = new Map(capacities.map((capacity) => [capacity.id, roomOf(capacity)]));
  for (const seeker of empty) {
    const fits = seeker.ranked.find(({ offer, need }) =>
      takeRoom({ ...(rooms.get(offer.capacityId) ?? NO_ROOM) }, need),
    );
    seeker.heldUpBy = (fits && holders.get(fits.offer.capacityId)) ?? null;
  }
}

/** Takes a lone seeker's best candidate without a look at what is free, which it usually has; whether it had. */
async function takeBest(tx: Tx, seeker: Seeker): Promise<boolean> {
  const [best] = seeker.ranked;
  if (!best || !(await takeUsed(tx, best.offer.capacityId, add(NO_ROOM, best.need), true))) return false;
  seeker.chosen = best;
  return true;
}

/** Looks at the best few first: usually one of them has room. */
const FIRST_LOOK = 64;

async function firstWithRoom(
  tx: Tx,
  rooms: Map<string, Room>,
  ranked: readonly RankedOffer[],
): Promise<RankedOffer | null> {
  for (let from = 0, size = FIRST_LOOK; from < ranked.length; from += size, size *= 8) {
    const look = ranked.slice(from, from + size);
    await readRooms(tx, rooms, look);
    const found = look.find((r) => takeRoom(rooms.get(r.offer.capacityId) ?? NO_ROOM, r.need));
    if (found) return found;
  }
  return null;
}

const NO_ROOM: Room = Object.freeze({ cpuMillis: 0, memoryMb: 0, gpus: 0, slots: 0 });

async function readRooms(tx: Tx, rooms: Map<string, Room>, look: readonly RankedOffer[]): Promise<void> {
  const missing = [...new Set(look.map((r) => r.offer.capacityId))].filter((id) => !rooms.has(id));
  if (missing.length === 0) return;
  for (const capacity of await tx.rows(Capacity, "where t.id = any($1)", [missing]))
    rooms.set(capacity.id, roomOf(capacity));
}

/** What a claim knows of capacities, and whose rows it has locked. */
interface Standing {
  rooms: Map<string, Room>;
  held: Set<string>;
  /** Capacities that were chosen, and then locked by others or taken in the meantime. */
  missed: Set<string>;
  passOver: boolean;
}

/**
 * Reserves what was chosen; returns the seekers that came too late. Capacities are waited for in one order, against
 * deadlocks: one that comes before what is held already is taken only if nobody else has it in hand.
 */
async function reserveChosen(
  tx: Tx,
  { rooms, held, missed, passOver }: Standing,
  seekers: readonly Seeker[],
): Promise<Seeker[]> {
  const byCapacity = Map.groupBy(seekers, (s) => s.chosen!.offer.capacityId);
  const late: Seeker[] = [];
  for (const id of [...byCapacity.keys()].sort()) {
    const group = byCapacity.get(id)!;
    const sum = group.reduce<Room>((total, s) => add(total, s.chosen!.need), NO_ROOM);
    const wait = !passOver && [...held].every((other) => other <= id);
    if (await takeUsed(tx, id, sum, wait)) {
      held.add(id);
      continue;
    }
    missed.add(id);
    if (wait) rooms.delete(id);
    else rooms.set(id, NO_ROOM);
    for (const seeker of group) seeker.chosen = null;
    late.push(...group);
  }
  return late;
}

function add(total: Room, need: ResourceNeed): Room {
  return {
    cpuMillis: total.cpuMillis + need.cpuMillis,
    memoryMb: total.memoryMb + need.memoryMb,
    gpus: total.gpus + need.gpus,
    slots: total.slots + 1,
  };
}

/**
 * Takes `room` of a capacity if it is free; the one statement that guards against giving anything out twice. Without
 * `wait` also only if nobody else is writing it.
 */
async function takeUsed(tx: Tx, capacityId: string, room: Room, wait: boolean): Promise<boolean> {
  const taken = await tx.sql(
    `update compute.capacity set cpu_millis_used = cpu_millis_used + $2, memory_mb_used = memory_mb_used + $3,
       gpus_used = gpus_used + $4, slots_used = slots_used + $5
     where id = ${wait ? "$1" : "(select id from compute.capacity where id = $1 for update skip locked)"}
       and cpu_millis_used + $2 <= cpu_millis and memory_mb_used + $3 <= memory_mb
       and gpus_used + $4 <= gpus and slots_used + $5 <= slots returning id`,
    [capacityId, room.cpuMillis, room.memoryMb, room.gpus, room.slots],
  );
  return taken.length === 1;
}

/** Gives one order's reservation back. The caller sees to it that this happens once. */
export async function giveBack(tx: Tx, capacityId: string, need: ResourceNeed): Promise<void> {
  await tx.sql(
    `update compute.capacity set cpu_millis_used = cpu_millis_used - $2, memory_mb_used = memory_mb_used - $3,
       gpus_used = gpus_used - $4, slots_used = slots_used - 1 where id = $1`,
    [capacityId, need.cpuMillis, need.memoryMb, need.gpus],
  );
}
