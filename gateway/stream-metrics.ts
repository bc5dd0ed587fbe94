import type { Metrics } from "../infra/telemetry/metrics.ts";
import type { OpenStreams } from "./open-streams.ts";

/** Shows what a gateway's clients hold open: all of it falls to zero when everybody has gone. */
export function measureStreams(metrics: Metrics, streams: Pick<OpenStreams, "byKind" | "withoutKey">): void {
  metrics.gauges("nodus_open_streams", "Streams that clients hold open here.", "kind", () => streams.byKind);
  metrics.gauge(
    "nodus_open_streams_without_key",
    "Those of them whose callers have shown no key.",
    [],
    () => streams.withoutKey,
  );
}
