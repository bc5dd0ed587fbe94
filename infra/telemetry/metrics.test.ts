import { expect, test } from "vitest";
import { Metrics } from "./metrics.ts";

test("measurements are printed for Prometheus, with the process's role", async () => {
  const metrics = new Metrics("worker");
  metrics.counter("nodus_placements_total", "Placements by outcome.", ["outcome"]).inc({ outcome: "placed" }, 3);
  metrics.duration("nodus_claim_seconds", "Time of a claim.").observe(0.002);
  metrics.gauge("nodus_outbox_rows", "Jobs that wait for the relay.", [], async () => 7);
  metrics.gauges("nodus_open_doors", "Doors by place.", "place", () => ({ front: 1, back: 0 }));
  const { contentType, body } = await metrics.text();
  expect(contentType).toMatch(/^text\/plain; version=/);
  expect(body).toContain('nodus_placements_total{outcome="placed",role="worker"} 3');
  expect(body).toContain('nodus_claim_seconds_bucket{le="0.003",role="worker"} 1');
  expect(body).toContain('nodus_outbox_rows{role="worker"} 7');
  expect(body).toContain('nodus_open_doors{place="front",role="worker"} 1');
  expect(body).toContain('nodus_open_doors{place="back",role="worker"} 0');
  expect(body).toMatch(/^nodus_process_resident_memory_bytes\{role="worker"\} \d+$/m);
  metrics.clear();
});
