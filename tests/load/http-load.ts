import type autocannon from "autocannon";
import type { Served } from "./bench-place.ts";
import type { Rate } from "./bench-row.ts";
import { cpuMicrosOf } from "./measure.ts";

/** One kind of request, sent with each key in turn: a single key would meet its rate limit. */
export interface HttpLoad {
  readonly requests: readonly autocannon.Request[];
  readonly connections?: number;
  /** One round; there are `ROUNDS` of each side, taking turns. */
  readonly roundSeconds?: number;
}

const ROUNDS = 2;
/** Code that has run a few thousand times costs a fraction of code that has not. */
const WARM_UP_SECONDS = 3;

/** Loads both servers in turns, so that what else the machine does falls on both alike. */
export async function httpRates(
  nodus: { served: Served; load: HttpLoad },
  baseline: { served: Served; load: HttpLoad },
): Promise<{ nodus: Rate; baseline: Rate }> {
  const sums = [nodus, baseline].map((side) => ({ ...side, answers: 0, seconds: 0, cpuMicros: 0 }));
  for (const { served, load } of sums) await send(served, load, WARM_UP_SECONDS);
  for (let round = 0; round < ROUNDS; round++)
    for (const sum of sums) {
      const cpuBefore = cpuMicrosOf(sum.served.pid);
      const { requests, duration } = await send(sum.served, sum.load, sum.load.roundSeconds ?? 2);
      sum.answers += requests.total;
      sum.seconds += duration;
      sum.cpuMicros += cpuMicrosOf(sum.served.pid) - cpuBefore;
    }
  const [first, second] = sums.map(
    ({ answers, seconds, cpuMicros }): Rate => ({ perSecond: answers / seconds, cpuMicros: cpuMicros / answers }),
  );
  return { nodus: first!, baseline: second! };
}

async function send({ origin }: Served, load: HttpLoad, seconds: number): Promise<autocannon.Result> {
  const { requests, connections = 32 } = load;
  const { default: cannon } = await import("autocannon");
  const result = await cannon({ url: origin, connections, duration: seconds, requests: [...requests] });
  const bad = result.non2xx + result.errors + result.timeouts;
  if (bad > 0) throw new Error(`${bad} of ${result.requests.total} requests to ${origin} did not succeed`);
  return result;
}
