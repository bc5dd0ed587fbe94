import { Database } from "../infra/db/database.ts";
import { startEmbeddedPostgres } from "../infra/db/embedded/embedded-postgres.ts";
import { hasCluster } from "../infra/db/embedded/place.ts";
import { migrate } from "../infra/db/migrate.ts";
import { openWakeups } from "../infra/live/open-wakeups.ts";
import type { Settings } from "../infra/telemetry/environment.ts";
import { createLogger } from "../infra/telemetry/logger.ts";
import { allEntities } from "../roles/entities.ts";
import { seeServers } from "../roles/reachable.ts";
import { takeEvents } from "../roles/take-events.ts";
import { ClientError } from "./client.ts";
import { putAway } from "./put-away.ts";

/**
 * Runs an operator's command on the deployment's database, and leaves a platform that is running undisturbed. Throws
 * `ClientError`, and makes nothing, where no platform has its data.
 */
export async function withDatabase(
  settings: Settings,
  work: (db: Database, url: string) => Promise<void>,
): Promise<void> {
  const logger = createLogger({ level: "warn", role: "operator" });
  if (!settings.databaseUrl) requirePlatform(settings.dataDir);
  await seeServers(settings);
  const embedded = settings.databaseUrl ? null : await startEmbeddedPostgres({ dataDir: settings.dataDir, logger });
  const url = settings.databaseUrl ?? embedded!.url;
  const open: (() => void | Promise<void>)[] = [() => (embedded?.adopted ? embedded.leave() : embedded?.stop())];
  try {
    await migrate(url);
    const db = await Database.open({ url, entities: allEntities, poolSize: 4 });
    open.unshift(() => db.close());
    const wakeups = await openWakeups({ databaseUrl: url, redisUrl: settings.redisUrl ?? undefined, logger });
    open.unshift(() => wakeups.close());
    db.announceTo((topic) => wakeups.announce(topic));
    db.offerTo(takeEvents);
    await work(db, url);
  } finally {
    await putAway(open);
  }
}

function requirePlatform(dataDir: string): void {
  if (hasCluster(dataDir)) return;
  throw new ClientError(
    `There is no platform's data in ${dataDir}. Set NODUS_DATA_DIR to the folder that the platform's start message calls Data, ` +
      "or DATABASE_URL to the database that it was given.",
  );
}

/** The team that was named, or the only one there is. */
export async function teamOf(db: Database, given: string | undefined): Promise<string> {
  const teams = await db.sql<{ id: string; name: string }>(
    "select id, name from compute.team order by created_at limit 20",
  );
  if (given) {
    const [found] = await db.sql("select 1 from compute.team where id = $1", [given]);
    if (!found) throw new ClientError(`There is no team ${given}.`);
    return given;
  }
  if (teams.length === 1) return teams[0]!.id;
  if (teams.length === 0) throw new ClientError("There is no team yet: start the platform once.");
  throw new ClientError(`Say which team with --team: ${teams.map((t) => `${t.id} (${t.name})`).join(", ")}.`);
}
