import type { Metrics } from "../telemetry/metrics.ts";
import { openFollowers } from "./follow.ts";
import type { Wakeups } from "./wakeups.ts";

/** Shows how many streams this process holds open upstream: both fall to zero when every reader has gone. */
export function measureLive(metrics: Metrics, wakeups: Pick<Wakeups, "listeners">): void {
  metrics.gauge("nodus_open_followers", "Streams that wait for rows in this process.", [], openFollowers);
  metrics.gauge("nodus_wakeup_listeners", "Callbacks that wait for a wake-up.", [], () => wakeups.listeners);
}
