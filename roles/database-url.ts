import type { Agreement } from "../infra/db/agreement.ts";
import { startEmbeddedPostgres } from "../infra/db/embedded/embedded-postgres.ts";
import { refusePooler } from "../infra/db/pooler.ts";
import { DatabaseInUse, lockPlatform, type Membership } from "../infra/db/single-platform.ts";
import type { Drain } from "../infra/telemetry/drain.ts";
import type { Settings } from "../infra/telemetry/environment.ts";
import type { Logger } from "../infra/telemetry/logger.ts";

/**
 * Starts or finds the database and takes it for this platform; gives back its address. A platform that is refused
 * leaves the embedded server alone: it belongs to the one that holds it.
 */
export async function claimDatabase(
  settings: Settings,
  { membership, agreements }: { membership: Membership; agreements: readonly Agreement[] },
  logger: Logger,
  drain: Drain,
): Promise<string> {
  const embedded = settings.databaseUrl ? null : await startEmbeddedPostgres({ dataDir: settings.dataDir, logger });
  const url = settings.databaseUrl ?? embedded!.url;
  try {
    if (!embedded) await refusePooler(url);
    const lock = await lockPlatform({
      url,
      membership,
      agreements,
      logger,
      onLost: (error) => {
        logger.fatal({ err: error }, "this process may not go on beside others that use the database");
        void drain.close().then(() => process.exit(1));
      },
    });
    if (embedded) drain.onClose("PostgreSQL", () => embedded.stop(), 30_000);
    drain.onClose("platform lock", () => lock.release());
    return url;
  } catch (error) {
    if (error instanceof DatabaseInUse) embedded?.leave();
    else await embedded?.stop();
    throw error;
  }
}
