import { mkdirSync, mkdtempSync, rmdirSync, statSync } from "node:fs";
import path from "node:path";
import { reachDatabase } from "../infra/db/reach-database.ts";
import { reachRedis } from "../infra/queue/reach-redis.ts";
import { type Settings, SettingsError } from "../infra/telemetry/environment.ts";
import { whyUnmade } from "./unwritable.ts";

/**
 * Sees that what the settings lead to is there, before anything stands on it: a wrong address or password is then told
 * by the setting's name. Throws `UnreachableServer` or `SettingsError`.
 */
export async function seeServers({ databaseUrl, redisUrl }: Pick<Settings, "databaseUrl" | "redisUrl">): Promise<void> {
  if (databaseUrl) await reachDatabase(databaseUrl);
  if (redisUrl) await reachRedis(redisUrl);
}

/**
 * Makes the data folder if need be, and sees that it can be written where the database is to be in it. Throws
 * `SettingsError` with the setting's name when that is not so.
 */
export function makeDataFolder({ dataDir, databaseUrl }: Pick<Settings, "dataDir" | "databaseUrl">): void {
  try {
    makeFolder(dataDir);
    if (databaseUrl === null) rmdirSync(mkdtempSync(path.join(dataDir, "writable-")));
  } catch (error) {
    const reason = whyUnmade(error);
    if (!reason) throw error;
    throw new SettingsError([
      `NODUS_DATA_DIR must be a folder that this user may write: ${reason} (it is "${dataDir}").`,
    ]);
  }
}

/** Makes a folder and those above it, one by one: Node's own way never ends where a file system says that there is no such place. */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  const above = path.dirname(folder);
  if (above !== folder) makeFolder(above);
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another process may have made it at this moment.
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
