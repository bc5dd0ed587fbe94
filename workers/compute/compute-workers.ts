import type { Driver } from "../../infra/drivers/driver.ts";
import type { Wakeups } from "../../infra/live/wakeups.ts";
import type { Logger } from "../../infra/telemetry/logger.ts";
import type { PlacementDeps } from "../../subgraphs/compute/placement/placement-deps.ts";

/** What compute's jobs and reconcilers use. */
export interface ComputeWorkerDeps extends PlacementDeps {
  logger: Logger;
  wakeups: Pick<Wakeups, "on">;
  /** By supplier. */
  drivers: ReadonlyMap<string, Driver>;
}
