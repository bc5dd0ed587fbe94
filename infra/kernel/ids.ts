import { randomFillSync } from "node:crypto";
import { v7 } from "uuid";

/** What every id of a noun starts with. The rest is a time-ordered UUID without dashes, so ids sort by creation. */
export const ID_PREFIX = {
  team: "team",
  member: "mem",
  apiKey: "key",
  workload: "wl",
  stageRun: "st",
  placement: "plc",
  order: "ord",
  offer: "off",
  ledgerEntry: "le",
  hold: "hold",
  event: "evt",
  manifest: "manifest",
  asset: "asset",
  secret: "sec",
  connection: "conn",
  workspace: "ws",
  pool: "pool",
  outbox: "ob",
  session: "ses",
  upload: "up",
  delivery: "dlv",
  export: "export",
  load: "load",
} as const;

export type IdNoun = keyof typeof ID_PREFIX;

/** Where ids get their randomness from. */
export type RandomBytes = (size: number) => Uint8Array;

/** Null: the machine's own. */
let source: RandomBytes | null = null;

/**
 * From now on this process makes ids from `random`, the same ones for the same seed; returns what ends that. For the
 * simulation, which is alone in its process.
 */
export function seedIds(random: RandomBytes): () => void {
  source = random;
  sequence = 0;
  latestMs = 0;
  return () => {
    source = null;
  };
}

/** Orders the ids that one process makes within a millisecond; 42 random bits keep those of two processes apart. */
let sequence = 0;
let latestMs = 0;

/**
 * Makes ids of one process. `now` is an argument, so a simulated day has the ids of that day.
 * The characters after the prefix are `[0-9a-f]` only.
 */
export function newId(noun: IdNoun, now: Date, random?: RandomBytes): string {
  const msecs = now.getTime();
  if (random) v7({ msecs, random: random(RANDOM_BYTES) }, uuid);
  else v7({ msecs, random: (source ?? fromReserve)(RANDOM_BYTES), seq: nextInMs(msecs) }, uuid);
  return `${ID_PREFIX[noun]}_${uuid.toString("hex")}`;
}

/** Random bytes that an id takes. */
const RANDOM_BYTES = 16;
/** Where an id is put together before it is written out. */
const uuid = Buffer.alloc(16);

/** The machine's randomness for the next 256 ids: asking for it one id at a time costs more than all else about an id. */
const reserve = Buffer.alloc(256 * RANDOM_BYTES);
let reserveTaken = reserve.length;

function fromReserve(size: number): Uint8Array {
  if (reserveTaken + size > reserve.length) {
    randomFillSync(reserve);
    reserveTaken = 0;
  }
  reserveTaken += size;
  return reserve.subarray(reserveTaken - size, reserveTaken);
}

function nextInMs(msecs: number): number {
  sequence = msecs === latestMs ? (sequence + 1) >>> 0 : 0;
  latestMs = msecs;
  return sequence;
}

/** True for a string that `newId(noun)` could have made or that an older deployment may have handed out. */
export function isId(noun: IdNoun, text: string): boolean {
  const prefix = `${ID_PREFIX[noun]}_`;
  return text.startsWith(prefix) && /^[A-Za-z0-9-]{1,64}$/.test(text.slice(prefix.length));
}
