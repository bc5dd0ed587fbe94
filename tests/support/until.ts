import { setTimeout as sleep } from "node:timers/promises";

/** Polls until `holds` gives something true, which is the answer; fails with what was waited for and what was seen last. */
export async function until<T>(
  what: string,
  holds: () => T | Promise<T>,
  { timeoutMs = 30_000, everyMs = 25 } = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const startedAt = performance.now();
  for (;;) {
    const found = await holds();
    if (found) return found as NonNullable<Exclude<T, false>>;
    if (performance.now() - startedAt > timeoutMs) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await sleep(everyMs);
  }
}
