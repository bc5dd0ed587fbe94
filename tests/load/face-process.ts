import { ELSEWHERE } from "../../infra/objects/storage-space.ts";
import { Drain } from "../../infra/telemetry/drain.ts";
import { readSettings } from "../../infra/telemetry/environment.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { computeSettings } from "../../roles/compute-settings.ts";
import { foreignNouns } from "../../roles/foreign-nouns.ts";
import { openParts } from "../../roles/parts.ts";
import { planProcess } from "../../roles/process-plan.ts";
import { createFace } from "../../roles/serve.ts";
import type { ComputeServices } from "../../subgraphs/compute/compute-context.ts";
import { OfferMarket } from "../../subgraphs/compute/offer/offer-market.ts";
import { assetPins } from "../../subgraphs/data/asset/asset-pins.ts";
import { connectionPins } from "../../subgraphs/data/connection/connection-pins.ts";
import { sinkLoads } from "../../subgraphs/data/load/sink-loads.port.ts";
import { pools } from "../../subgraphs/pools/pool/pool.port.ts";
import { machineKinds, makeTenants, offerAll, silentMarket } from "./bench-data.ts";
import { openWorkloads } from "./open-workloads.ts";

/** What the face tells the bench. */
export interface FaceFacts {
  /** One key of each team, and the ids of its workloads. */
  tenants: { key: string; workloadIds: string[] }[];
}

const TENANTS = 16;
const WORKLOADS = 10;

/** The platform's HTTP face alone, graph, REST and all: nothing is placed meanwhile, so requests are all that is measured. */
async function serve(): Promise<void> {
  const settings = readSettings();
  const logger = createLogger({ level: "error", role: "bench" });
  const drain = new Drain(logger);
  const end = () => void drain.close().then(() => process.exit(0));
  process.once("SIGTERM", end).once("SIGINT", end).once("disconnect", end);
  const plan = planProcess(settings);
  const parts = await openParts(settings, plan, logger, drain);
  const services: ComputeServices = {
    settings: computeSettings(settings, "http://127.0.0.1"),
    market: new OfferMarket(),
    assets: assetPins,
    secrets: parts.secretPins,
    connections: connectionPins,
    loads: sinkLoads,
    pools,
    exists: foreignNouns,
    wakeups: parts.wakeups,
    objects: parts.objects.results,
    space: ELSEWHERE,
    logger,
  };
  await offerAll(parts.db, silentMarket(machineKinds(16)));
  const made = await makeTenants(parts.db, TENANTS);
  const tenants = await Promise.all(
    made.map(async ({ actor, key }) => ({
      key,
      workloadIds: await openWorkloads({ ...services, db: parts.db }, actor, WORKLOADS),
    })),
  );
  const { app } = await createFace(parts, plan, services, {});
  const origin = await app.listen({ host: "127.0.0.1", port: 0 });
  drain.onClose("HTTP server", () => app.close());
  process.send!({ origin, tenants });
}

await serve();
