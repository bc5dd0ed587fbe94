import { mkdirSync, statSync } from "node:fs";
import { reachDatabase } from "../infra/db/reach-database.ts";
import { reachRedis } from "../infra/queue/reach-redis.ts";
import { type Settings, SettingsError } from "../infra/telemetry/environment.ts";

/**
 * Sees that what the settings lead to is there, before anything stands on it: a wrong address or password is then told
 * by the setting's name. Throws `UnreachableServer` or `SettingsError`.
 */
export async function seeServers({ databaseUrl, redisUrl }: Pick<Settings, "databaseUrl" | "redisUrl">): Promise<void> {
  if (databaseUrl) await reachDatabase(databaseUrl);
  if (redisUrl) await reachRedis(redisUrl);
}

/** Makes the data folder if need be. Throws `SettingsError` when a file is in its way, and what the file system says else. */
export function makeDataFolder({ dataDir }: Pick<Settings, "dataDir">): void {
  try {
    mkdirSync(dataDir, { recursive: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const inTheWay =
      code === "ENOTDIR" || (code === "EEXIST" && !statSync(dataDir, { throwIfNoEntry: false })?.isDirectory());
    if (!inTheWay) throw error;
    throw new SettingsError([`NODUS_DATA_DIR must be a folder, and a file is in its way (it is "${dataDir}").`]);
  }
}
