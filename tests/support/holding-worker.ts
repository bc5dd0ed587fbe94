// A process whose worker takes a job and never ends it, for tests that kill it. Argument: a HeldQueue as JSON.
import { openQueue } from "../../infra/queue/connection.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import type { HeldQueue } from "./worker-process.ts";

const held = JSON.parse(process.argv[2] ?? "") as HeldQueue;
const logger = createLogger({ level: "silent", role: "test" });
const { backend } = await openQueue({ ...held, logger });
const hold = () => {
  console.log("taken");
  return new Promise<never>(() => {});
};
const worker = backend.openWorker(held.queue, hold, { concurrency: 1, lockMs: held.lockMs, backoffMs: () => 0 });
await worker.waitUntilReady();
console.log("listening");
await worker.run();
