import type { FastifyInstance } from "fastify";
import { type Checks, liveness, readiness } from "../infra/telemetry/health.ts";
import type { Metrics } from "../infra/telemetry/metrics.ts";

/** What `/readyz` says of the whole process. */
export interface Phase {
  now: "starting" | "serving" | "stopping";
}

/** `/healthz`, `/readyz` and `/metrics`: every process has them. */
export function serveHealth(
  app: FastifyInstance,
  { metrics }: { metrics: Metrics },
  checks: Checks,
  phase: Phase,
): void {
  app.get("/healthz", async () => liveness().body);
  app.get("/readyz", async (_request, reply) => {
    const { status, body } = await readiness(checks, phase.now);
    return reply.code(status).send(body);
  });
  app.get("/metrics", async (_request, reply) => {
    const { contentType, body } = await metrics.text();
    return reply.type(contentType).send(body);
  });
}
