import type { Logger } from "../telemetry/logger.ts";

const SAME_ERROR_EVERY_MS = 10_000;

/** A listener that logs errors, each text at most once in ten seconds: a lost store reports itself many times a second. */
export function quietly(logger: Logger, sentence: string): (error: Error) => void {
  const last = new Map<string, { atMs: number; unsaid: number }>();
  return (err) => {
    const nowMs = performance.now();
    const seen = last.get(err.message);
    if (seen && nowMs - seen.atMs < SAME_ERROR_EVERY_MS) {
      seen.unsaid++;
      return;
    }
    if (last.size > 100) last.clear();
    last.set(err.message, { atMs: nowMs, unsaid: 0 });
    logger.warn({ err, repeated: seen?.unsaid ?? 0 }, sentence);
  };
}
