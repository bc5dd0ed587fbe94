import type { FastifyInstance } from "fastify";
import { createProcessServer } from "../gateway/process-server.ts";
import type { Subgraph } from "../infra/graphql/subgraph.ts";
import { MAX_FRAME_BYTES } from "../infra/runner/protocol.ts";
import type { Checks } from "../infra/telemetry/health.ts";
import { registerIntake } from "../intake/server.ts";
import { createIntake } from "../intake/session-hub.ts";
import type { ComputeServices } from "../subgraphs/compute/compute-context.ts";
import { buildSubgraph, contextFor } from "./graph.ts";
import type { Parts } from "./parts.ts";
import type { ProcessPlan } from "./process-plan.ts";
import { type Phase, serveHealth } from "./serve-health.ts";

/** Builds the HTTP face of a process: what its roles serve, on one server, which does not listen yet. */
export async function createFace(
  parts: Parts,
  plan: ProcessPlan,
  compute: ComputeServices,
  checks: Checks,
): Promise<{ app: FastifyInstance; phase: Phase }> {
  const subgraphs = plan.subgraphs.map(buildSubgraph);
  const app = plan.gateway
    ? await (await import("./serve-gateway.ts")).createGatewayServer(parts, plan, compute, subgraphs)
    : await createProcessServer({ log: parts.logger, socketBytes: MAX_FRAME_BYTES });
  // Beside others, a process also serves its subgraphs to their gateways.
  if (!plan.alone && subgraphs.length > 0) await serveSubgraphs(app, parts, compute, subgraphs);
  if (plan.intake) await serveIntake(app, parts, compute);
  const phase: Phase = { now: "starting" };
  serveHealth(app, parts, checks, phase);
  return { app, phase };
}

async function serveSubgraphs(
  app: FastifyInstance,
  parts: Parts,
  compute: ComputeServices,
  subgraphs: readonly Subgraph[],
): Promise<void> {
  const { serveSubgraph } = await import("../gateway/subgraph-server.ts");
  for (const { name, schema } of subgraphs)
    await serveSubgraph(app, {
      name,
      schema,
      contextFor: contextFor(parts, compute),
      signingKey: parts.keys.actor,
      clock: parts.clock,
      log: parts.logger,
    });
}

async function serveIntake(app: FastifyInstance, parts: Parts, compute: ComputeServices): Promise<void> {
  const { db, clock, logger, wakeups } = parts;
  const intake = createIntake({
    db,
    clock,
    settings: compute.settings,
    secrets: parts.secretPins,
    random: (size) => crypto.getRandomValues(new Uint8Array(size)),
    logger,
    wakeups,
  });
  const { assets, results: outputs } = parts.objects;
  await registerIntake(app, { db, intake, assets, outputs, clock });
}
