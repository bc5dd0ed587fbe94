import { cpus, loadavg, release, totalmem } from "node:os";
import pg from "pg";

/** What a reader must know of the machine to compare figures. */
export async function machineFacts(databaseUrl: string): Promise<string> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query(
    "select current_setting('server_version') as version, current_setting('fsync') as fsync",
  );
  await client.end();
  const cores = cpus();
  return [
    `Machine     ${cores.length} cores (${cores[0]?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}`,
    `Software    Node ${process.versions.node}, PostgreSQL ${rows[0].version} (fsync ${rows[0].fsync})`,
    `Load        ${loadAverage()} before the bench; its load generator shares these cores`,
    "",
  ].join("\n");
}

/** Runnable processes on average over the last minute. */
export function loadAverage(): string {
  return loadavg()[0]!.toFixed(1);
}
