import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestProject } from "vitest/node";
import { databaseUrl, startEmbeddedPostgres } from "../../infra/db/embedded/embedded-postgres.ts";
import { readPidFile } from "../../infra/db/embedded/pid-file.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Superuser's connection to the `postgres` database of the run's server. Tests make databases of their own. */
    databaseUrl: string;
  }
}

const FOLDER_START = "nodus-tests-";

/** One PostgreSQL for the whole run. It skips flushes to disk; crash tests start durable ones of their own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  removeLeftovers();
  const dataDir = mkdtempSync(path.join(tmpdir(), `${FOLDER_START}${process.pid}-`));
  chmodSync(dataDir, 0o711); // so that PostgreSQL's own account can enter when root runs the tests
  const postgres = await startEmbeddedPostgres({
    dataDir,
    logger: createLogger({ level: "error", role: "tests" }),
    durable: false,
  });
  project.provide("databaseUrl", databaseUrl(postgres.url, "postgres"));
  return async () => {
    await postgres.stop();
    rmSync(dataDir, { recursive: true, force: true });
    rmSync(postgres.folder, { recursive: true, force: true });
  };
}

/** Servers of runs that were killed before they could clean up. */
function removeLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(FOLDER_START)) continue;
    const runner = name.slice(FOLDER_START.length).split("-")[0];
    if (existsSync(`/proc/${runner}`)) continue;
    const folder = path.join(tmpdir(), name);
    const server = readPidFile(path.join(folder, "postgres"));
    if (server) process.kill(server.pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}
