// A process that holds an embedded PostgreSQL, for tests that kill it or run it as somebody else.
// Arguments: the data folder, and `durable` to flush to disk as the platform does. Prints one JSON line when ready; ends when its standard input does.
import { startEmbeddedPostgres } from "../../infra/db/embedded/embedded-postgres.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";

const postgres = await startEmbeddedPostgres({
  dataDir: process.argv[2]!,
  durable: process.argv[3] === "durable",
  logger: createLogger({ level: "warn", role: "test", destination: process.stderr }),
});
const { url, adopted, folder, uid } = postgres;
process.stdout.write(`${JSON.stringify({ url, adopted, folder, uid, pid: postgres.pid() })}\n`);
process.stdin.resume().once("end", () => void postgres.stop().then(() => process.exit(0)));
