import { seeded } from "../../support/seeded.ts";

/** How long, from which seed, and how to tell of it. */
export interface Plan {
  readonly hours: number;
  readonly seed: number;
  /** Streams that come and go together. */
  readonly streams: number;
  readonly random: (below: number) => number;
  isOver(): boolean;
  /** A line of progress, with the time that has passed. */
  say(line: string): void;
}

/** As `run.mjs` was told. */
export function planned(): Plan {
  const hours = Number(process.env.NODUS_SOAK_HOURS);
  const seed = Number(process.env.NODUS_SOAK_SEED);
  const startedAt = performance.now();
  const passedMs = () => performance.now() - startedAt;
  return {
    hours,
    seed,
    streams: Number(process.env.NODUS_SOAK_STREAMS),
    random: seeded(seed),
    isOver: () => passedMs() > hours * 3_600_000,
    say: (line) => void process.stdout.write(`[${clock(passedMs())}] ${line}\n`),
  };
}

function clock(ms: number): string {
  return new Date(ms).toISOString().slice(11, 19);
}
