import type { Clock } from "../kernel/clock.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Queryer } from "./database.ts";

/**
 * Warns when this machine's clock is farther from the database server's than half of `LIMITS.clockSkewMs`: two machines of
 * which neither is farther off are not too far from each other. Answers how many milliseconds it is ahead, at least; how
 * long the answer takes is allowed for.
 */
export async function warnOfClockDifference(
  db: Pick<Queryer, "sql">,
  clock: Pick<Clock, "now">,
  logger: Pick<Logger, "warn">,
): Promise<number> {
  const askedAtMs = clock.now().getTime();
  const [answer] = await db.sql<{ at: Date }>("select clock_timestamp() as at");
  const serverMs = answer!.at.getTime();
  const aheadMs = Math.max(0, askedAtMs - serverMs) + Math.min(0, clock.now().getTime() - serverMs);
  if (Math.abs(aheadMs) > LIMITS.clockSkewMs / 2)
    logger.warn({ aheadMs }, "this machine's clock differs from the database server's: run a time service on both");
  return aheadMs;
}
