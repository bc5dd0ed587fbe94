import { basisPoints, chargeMicros, fundedMs, lesserMicros, type Micros } from "../../../infra/kernel/micros.ts";

/** What running costs: the capacity's rate, and the platform's fee on top of its charge. */
export interface Price {
  rateMicrosPerHour: Micros;
  feeBasisPoints: number;
}

export interface Charge {
  computeMicros: Micros;
  feeMicros: Micros;
  totalMicros: Micros;
}

/** The charge for `ms` of running; both parts are rounded down. */
export function chargeFor(price: Price, ms: number): Charge {
  const computeMicros = chargeMicros(price.rateMicrosPerHour, ms);
  const feeMicros = basisPoints(computeMicros, price.feeBasisPoints);
  return { computeMicros, feeMicros, totalMicros: computeMicros + feeMicros };
}

/** A charge cut to what was authorised: the fee gives way first, then the capacity's part. */
export function cappedCharge(charge: Charge, capMicros: Micros): Charge {
  if (charge.totalMicros <= capMicros) return charge;
  const computeMicros = lesserMicros(charge.computeMicros, capMicros);
  return { computeMicros, feeMicros: capMicros - computeMicros, totalMicros: capMicros };
}

/** Longest running time in milliseconds whose charge does not exceed `micros`; null when running is free. */
export function runMsFor(price: Price, micros: Micros): number | null {
  return price.rateMicrosPerHour === 0n ? null : fundedMs(dearest(price), micros);
}

/** The least that pays for `ms` of running: what `runMsFor` turns into at least that long. */
export function microsFor(price: Price, ms: number): Micros {
  return price.rateMicrosPerHour === 0n ? 0n : chargeMicros(dearest(price), ms) + 1n;
}

/** An hourly price that is never below the true one, whatever the fee is rounded to: authorised time is never too long. */
function dearest(price: Price): Micros {
  return hourlyMicros(price) + 1n;
}

/** What an hour of running costs in all: the capacity's rate and the fee on it. */
export function hourlyMicros(price: Price): Micros {
  return price.rateMicrosPerHour + basisPoints(price.rateMicrosPerHour, price.feeBasisPoints);
}
