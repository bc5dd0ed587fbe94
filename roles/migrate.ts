import { Database } from "../infra/db/database.ts";
import { startEmbeddedPostgres } from "../infra/db/embedded/embedded-postgres.ts";
import { migrate } from "../infra/db/migrate.ts";
import type { Settings } from "../infra/telemetry/environment.ts";
import { createLogger } from "../infra/telemetry/logger.ts";
import { allEntities } from "./entities.ts";
import { makeDataFolder, seeServers } from "./reachable.ts";

/** Applies migrations, or prints the SQL that the entities need beyond them: the start of a new migration file. */
export async function migrateDatabase(settings: Settings, options: { print?: boolean }): Promise<void> {
  const logger = createLogger({ level: "warn", role: "migrate" });
  if (!settings.databaseUrl) makeDataFolder(settings);
  await seeServers(settings);
  const embedded = settings.databaseUrl ? null : await startEmbeddedPostgres({ dataDir: settings.dataDir, logger });
  const url = settings.databaseUrl ?? embedded!.url;
  try {
    const applied = await migrate(url);
    if (options.print) process.stdout.write(await missingSql(url));
    else process.stdout.write(applied.length ? `Applied ${applied.join(", ")}.\n` : "Nothing to apply.\n");
  } finally {
    if (embedded?.adopted) embedded.leave();
    else await embedded?.stop();
  }
}

/** SQL that would bring a database's tables up to the entities; empty when they agree. Drops nothing. */
export async function missingSql(url: string): Promise<string> {
  const db = await Database.open({ url, entities: allEntities });
  try {
    return await db.orm.schema.getUpdateSchemaSQL({ wrap: false, safe: true, dropTables: false });
  } finally {
    await db.close();
  }
}
