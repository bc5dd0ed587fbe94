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
  workspace: "ws",
  pool: "pool",
  outbox: "ob",
  session: "ses",
  upload: "up",
} as const;

export type IdNoun = keyof typeof ID_PREFIX;

/** Where ids get their randomness from; the simulation gives a seeded one. */
export type RandomBytes = (size: number) => Uint8Array;

/** Orders the ids that one process makes within a millisecond; 42 random bits keep those of two processes apart. */
let sequence = 0;
let latestMs = 0;

/**
 * Makes ids of one process. `now` is an argument, so a simulated day has the ids of that day.
 * The characters after the prefix are `[0-9a-f]` only.
 */
export function newId(noun: IdNoun, now: Date, random?: RandomBytes): string {
  const msecs = now.getTime();
  const uuid = v7(random ? { msecs, random: random(16) } : { msecs, seq: nextInMs(msecs) });
  return `${ID_PREFIX[noun]}_${uuid.replaceAll("-", "")}`;
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
