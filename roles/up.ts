import { mkdirSync } from "node:fs";
import { sqlState } from "../infra/db/database.ts";
import { Drain, drainOnSignals } from "../infra/telemetry/drain.ts";
import { type Settings, SettingsError, unknownVariables } from "../infra/telemetry/environment.ts";
import type { Checks } from "../infra/telemetry/health.ts";
import { createLogger } from "../infra/telemetry/logger.ts";
import { openAccount } from "../subgraphs/compute/account/account.commands.ts";
import type { ComputeServices } from "../subgraphs/compute/compute-context.ts";
import { OfferMarket } from "../subgraphs/compute/offer/offer-market.ts";
import { bootstrap } from "../subgraphs/compute/team/bootstrap.ts";
import { assetPins } from "../subgraphs/data/asset/asset-pins.ts";
import { pools } from "../subgraphs/pools/pool/pool.port.ts";
import { banner } from "./banner.ts";
import { computeSettings } from "./compute-settings.ts";
import { foreignNouns } from "./foreign-nouns.ts";
import { openParts, type Parts } from "./parts.ts";
import { createFace } from "./serve.ts";
import { startWork, type Work } from "./work.ts";

/** The whole platform in this process: `nodus up`. Resolves once it serves; it runs until a signal ends it. */
export async function up(settings: Settings): Promise<void> {
  refuseSeparateProcesses(settings);
  mkdirSync(settings.dataDir, { recursive: true });
  const logger = createLogger({ level: settings.logLevel, role: "platform" });
  const drain = new Drain(logger);
  drainOnSignals(drain, logger, settings.drainSeconds * 1000);
  try {
    await start(settings, await openParts(settings, "platform", "alone", logger, drain));
  } catch (error) {
    await drain.close();
    throw error;
  }
}

/** Better than a process that quietly does more or less than it was told. */
function refuseSeparateProcesses(settings: Settings): void {
  const problems: string[] = [];
  if (!settings.roles.includes("all"))
    problems.push("NODUS_ROLES must be all or unset: this release runs every role in one process.");
  if (settings.subgraphUrls.length > 0)
    problems.push("NODUS_SUBGRAPH_URLS must be unset: this release runs every subgraph in the platform's process.");
  if (problems.length > 0) throw new SettingsError(problems);
}

async function start(settings: Settings, parts: Parts): Promise<void> {
  // The settings need the port that was really taken, so the face listens before work starts.
  const compute = services(parts, `http://${hostOf(settings)}:${settings.port}`);
  let work: Work | null = null;
  const checks = checksOf(parts, () => work);
  const { app, phase } = await createFace(parts, compute, checks);
  const address = await app.listen({ host: settings.host, port: settings.port });
  parts.drain.onClose("HTTP server", () => app.close());
  Object.assign(compute.settings, computeSettings(settings, address));
  work = await startWork(parts, compute.settings, compute.market);
  parts.drain.onClose("readiness", () => {
    phase.now = "stopping";
  });
  const isolation = await work.local.isolation().catch((error: Error) => error);
  // Last of all: the key's text is shown once, so a start that fails must not have made it.
  const newKey = await openFirstTeam(parts, compute.settings.concurrentRunsLimit);
  phase.now = "serving";
  const origin = compute.settings.publicUrl;
  process.stdout.write(banner({ settings, origin, newKey, isolation, unknown: unknownVariables() }));
}

/** Sees that the first team and its account are there. Resolves to the first key's text when this call made it. */
async function openFirstTeam({ db, settings, clock }: Parts, concurrentRunsLimit: number): Promise<string | null> {
  const first = await bootstrap(db, { key: settings.bootstrapKey ?? undefined, now: clock.now() });
  await db.command((tx) =>
    openAccount(
      tx,
      {
        teamId: first.team.id,
        creditMicros: settings.newTeamCreditMicros,
        paymentMethod: settings.firstTeamHasPaymentMethod,
        concurrentRunsLimit,
      },
      clock.now(),
    ),
  );
  return first.key;
}

function services(parts: Parts, origin: string): ComputeServices {
  return {
    settings: computeSettings(parts.settings, origin),
    market: new OfferMarket(),
    assets: assetPins,
    secrets: parts.secretPins,
    pools,
    exists: foreignNouns,
    wakeups: parts.wakeups,
    objects: parts.objects.results,
    logger: parts.logger,
  };
}

function checksOf(parts: Parts, work: () => Work | null): Checks {
  return {
    database: async () => {
      try {
        await parts.db.sql("select 1");
        return null;
      } catch (error) {
        return `the database does not answer (${sqlState(error) ?? "no connection"})`;
      }
    },
    queue: async () => {
      const started = work();
      if (!started) return "not started";
      await started.pingQueue();
      return null;
    },
    objects: async () => {
      await Promise.all([parts.objects.assets.ping(), parts.objects.results.ping()]);
      return null;
    },
    supplier: async () => {
      const started = work();
      if (!started) return "not started";
      if ((await started.suppliers()).length === 0) return "no supplier of capacity has answered lately";
      const { level, detail } = await started.local.isolation();
      if (level !== "none" || parts.settings.allowUnisolated) return null;
      return `the local machine offers no capacity, since it can't isolate guests: ${detail}`;
    },
  };
}

function hostOf(settings: Settings): string {
  return settings.host === "0.0.0.0" || settings.host === "::" ? "127.0.0.1" : settings.host;
}
