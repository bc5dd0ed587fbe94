import { warnOfClockDifference } from "../infra/db/clock-difference.ts";
import { Database } from "../infra/db/database.ts";
import { migrate } from "../infra/db/migrate.ts";
import { type Clock, systemClock } from "../infra/kernel/clock.ts";
import { LIMITS } from "../infra/kernel/limits.ts";
import { measureLive } from "../infra/live/live-metrics.ts";
import { openWakeups } from "../infra/live/open-wakeups.ts";
import type { Wakeups } from "../infra/live/wakeups.ts";
import { type FetchPort, openFetch } from "../infra/net/fetch-https.ts";
import { PrivateExceptions } from "../infra/net/public-address.ts";
import type { Drain } from "../infra/telemetry/drain.ts";
import type { Settings } from "../infra/telemetry/environment.ts";
import type { Logger } from "../infra/telemetry/logger.ts";
import { Metrics } from "../infra/telemetry/metrics.ts";
import { unreadableCount } from "../subgraphs/data/secret/rewrap-sealed.ts";
import { SecretBox } from "../subgraphs/data/secret/secret-box.ts";
import { SecretPins } from "../subgraphs/data/secret/secret-pins.ts";
import { agreementsOf } from "./agreements.ts";
import { claimDatabase } from "./database-url.ts";
import { allEntities } from "./entities.ts";
import { type DeploymentKeys, deploymentKeys } from "./keys.ts";
import { type ObjectStores, openObjectStores } from "./object-stores.ts";
import type { ProcessPlan } from "./process-plan.ts";
import { takeEvents } from "./take-events.ts";

/** What every server role stands on. */
export interface Parts {
  settings: Settings;
  logger: Logger;
  drain: Drain;
  metrics: Metrics;
  clock: Clock;
  keys: DeploymentKeys;
  databaseUrl: string;
  db: Database;
  wakeups: Wakeups;
  objects: ObjectStores;
  secretBox: SecretBox;
  secretPins: SecretPins;
  /** The way out for fetches on behalf of tenants. */
  fetch: FetchPort;
}

/**
 * Opens what a role stands on, in order, each part registered for closing. Refuses when another platform holds the
 * database (`DatabaseInUse`), when another process of the deployment has other keys or another store (`Disagreement`),
 * when the database is reached through a transaction pooler, or when it is newer than this release.
 */
export async function openParts(settings: Settings, plan: ProcessPlan, logger: Logger, drain: Drain): Promise<Parts> {
  const keys = deploymentKeys(settings);
  const claim = {
    membership: plan.alone ? ("alone" as const) : ("member" as const),
    agreements: agreementsOf(settings, plan, keys),
  };
  const databaseUrl = await claimDatabase(settings, claim, logger, drain);
  const applied = await migrate(databaseUrl);
  if (applied.length > 0) logger.info({ applied }, "the database was migrated");
  const db = await Database.open({ url: databaseUrl, entities: allEntities, poolSize: settings.databasePoolSize });
  drain.onClose("database", () => db.close());
  await warnOfClockDifference(db, systemClock, logger);
  const wakeups = await openWakeups({ databaseUrl, redisUrl: settings.redisUrl ?? undefined, logger });
  drain.onClose("wake-ups", () => wakeups.close());
  db.announceTo((topic) => wakeups.announce(topic));
  db.offerTo(takeEvents);
  const metrics = new Metrics(plan.name);
  measureLive(metrics, wakeups);
  const fetch = openFetch({
    exceptions: new PrivateExceptions(settings.allowPrivateHosts),
    idleMs: LIMITS.assetSourceIdleMs,
  });
  drain.onClose("fetches", () => fetch.close());
  const secretBox = new SecretBox(keys.secrets, keys.otherSecrets);
  const unreadable = await unreadableCount(db, secretBox);
  if (unreadable > 0)
    logger.warn({ unreadable }, "stored secrets were encrypted with a master key that this process does not have");
  return {
    settings,
    logger,
    drain,
    metrics,
    clock: systemClock,
    keys,
    databaseUrl,
    db,
    wakeups,
    objects: await openObjectStores(settings),
    secretBox,
    secretPins: new SecretPins(secretBox),
    fetch,
  };
}
