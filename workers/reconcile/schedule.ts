import { heldApart } from "../../infra/db/each-step.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import type { Wakeups } from "../../infra/live/wakeups.ts";
import type { Logger } from "../../infra/telemetry/logger.ts";

/**
 * Something that puts the world right without being told what is wrong. It takes no input, may run anywhere and any
 * number of times, and does a bounded amount of work in a run.
 */
export interface Reconciler {
  name: string;
  everyMs: number;
  /** Runs it early, though no more often than every `restMs`. */
  topic?: string;
  /** `wokenAt`: when the topic was announced; null for the regular round. */
  run(signal: AbortSignal, wokenAt: Date | null): Promise<void>;
}

export interface ScheduleOptions {
  clock: Clock;
  logger: Logger;
  wakeups: Pick<Wakeups, "on">;
  /** A number in [0, 1), so that processes do not run in step. */
  random: () => number;
  /** Told in each round in which steps waited in vain for rows that others hold. */
  onHeld?: (reconciler: string, steps: number) => void;
}

export interface Schedule {
  /** Stops all, after the rounds in hand. */
  close(): Promise<void>;
}

const REST_MS = 100;

/** Runs each reconciler in a loop of its own; one that fails is tried again in its next round. */
export function startReconcilers(reconcilers: readonly Reconciler[], options: ScheduleOptions): Schedule {
  const stop = new AbortController();
  const loops = reconcilers.map((reconciler) => loop(reconciler, options, stop.signal));
  return {
    close: async () => {
      stop.abort(new Error("the process is going down"));
      await Promise.all(loops);
    },
  };
}

async function loop(reconciler: Reconciler, options: ScheduleOptions, stop: AbortSignal): Promise<void> {
  const { clock, random } = options;
  let wokenAt: Date | null = null;
  let wake = () => {};
  const off = reconciler.topic
    ? options.wakeups.on(reconciler.topic, () => {
        wokenAt ??= clock.now();
        wake();
      })
    : () => {};
  while (!stop.aborted) {
    const woken = wokenAt;
    wokenAt = null;
    try {
      await reconciler.run(stop, woken);
    } catch (err) {
      if (!stop.aborted) tellFailure(reconciler.name, err, options);
    }
    await clock.sleep(REST_MS, stop);
    const early = new AbortController();
    wake = () => early.abort();
    if (wokenAt === null)
      await clock.sleep(reconciler.everyMs * (0.75 + random() / 2), AbortSignal.any([stop, early.signal]));
    wake = () => {};
  }
  off();
}

/** What waits is no failure, but whoever looks after the platform must hear of it: nothing else says that it is not done. */
function tellFailure(reconciler: string, err: unknown, { logger, onHeld }: ScheduleOptions): void {
  const { failures, held } = heldApart([err]);
  if (failures.length > 0) logger.error({ err, reconciler }, "a reconciler failed; it goes on next time");
  if (!held) return;
  const { steps, teamId } = held;
  onHeld?.(reconciler, steps);
  logger.warn({ reconciler, steps, teamId }, "steps wait for rows that others hold; they are tried again");
}
