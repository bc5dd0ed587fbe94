/** Micro-dollars. One US dollar is 1,000,000 micros; money is never a floating-point number inside. */
export type Micros = bigint;

export const MICROS_PER_USD = 1_000_000n;
const MS_PER_HOUR = 3_600_000n;

/** What `ms` milliseconds cost at an hourly rate, rounded down: a started micro is not charged. */
export function chargeMicros(rateMicrosPerHour: Micros, ms: number): Micros {
  if (rateMicrosPerHour < 0n) throw new RangeError("a rate is not negative");
  if (!Number.isSafeInteger(ms) || ms < 0) throw new RangeError("a duration is whole milliseconds, zero or more");
  return (rateMicrosPerHour * BigInt(ms)) / MS_PER_HOUR;
}

/** For how many whole milliseconds `micros` pay at an hourly rate, rounded down; null when the rate is zero. */
export function fundedMs(rateMicrosPerHour: Micros, micros: Micros): number | null {
  if (rateMicrosPerHour < 0n) throw new RangeError("a rate is not negative");
  if (rateMicrosPerHour === 0n) return null;
  if (micros <= 0n) return 0;
  const ms = (micros * MS_PER_HOUR) / rateMicrosPerHour;
  return ms > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(ms);
}

/** A share of an amount, zero or more, in basis points (1/100 of a percent), rounded down. */
export function basisPoints(amount: Micros, points: number): Micros {
  if (amount < 0n) throw new RangeError("a share is of zero or more");
  return (amount * BigInt(points)) / 10_000n;
}

/** Micros as dollars for the wire. Exact below 2^33 dollars (8.5 billion): above, doubles lie more than a micro apart. */
export function toUsd(micros: Micros): number {
  return Number(micros) / 1e6;
}

/** Dollars as a person or a JSON number spells them, with at most six decimals; null when it is not that. */
export function fromUsdText(text: string): Micros | null {
  const match = /^(-?)(\d+)(?:\.(\d{1,6})0*)?$/.exec(text);
  return match ? BigInt(match[1]! + match[2]! + (match[3] ?? "").padEnd(6, "0")) : null;
}

/**
 * A dollar amount of a JSON document, sub-micro digits rounded down (they cannot be spent).
 * Null for anything but a finite number.
 */
export function fromUsdNumber(value: unknown): Micros | null {
  if (typeof value !== "number" || !Number.isFinite(value)) return null;
  const text = decimalText(value);
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text)!;
  return BigInt(match[1]! + match[2]! + (match[3] ?? "").slice(0, 6).padEnd(6, "0"));
}

/** A finite number without an exponent, its shortest digits kept. */
function decimalText(value: number): string {
  const text = String(value);
  const match = /^(-?)(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(text);
  if (!match) return text;
  const [, sign, whole, fraction = "", exponent] = match;
  const digits = whole! + fraction;
  const point = whole!.length + Number(exponent);
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  if (point >= digits.length) return sign! + digits.padEnd(point, "0");
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** The smaller of two amounts. */
export function lesserMicros(a: Micros, b: Micros): Micros {
  return [a, b].reduce((least, amount) => (amount < least ? amount : least));
}
