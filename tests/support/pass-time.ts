import type { FakeClock } from "../../infra/kernel/clock.ts";

/** Time passes in small steps, and what each of them sets going has its turn before the next. */
export async function passTime(clock: FakeClock, ms: number, stepMs = 10): Promise<void> {
  await turn();
  for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) {
    await clock.advance(Math.min(stepMs, leftMs));
    await turn();
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
