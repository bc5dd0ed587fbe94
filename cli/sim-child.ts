import { SimulationFailure, simulateExactly } from "../roles/simulation/simulate.ts";
import { removeThrowAway, throwAwayDatabase } from "../roles/simulation/simulation-database.ts";
import type { LiveRequest, WorkerMessage } from "./sim-worker.ts";

// Lives through the seeds that its parent names, one after another, until the parent lets go of it or is gone. Its
// database is in the folder that the parent names, and goes with it.

const over = new AbortController();
const end = () => over.abort(new Error("nobody waits for this simulation any more"));
process.once("disconnect", end);
process.once("SIGTERM", end);
process.on("SIGINT", () => {}); // its parent's business

const tell = (message: WorkerMessage) => void (process.connected && process.send!(message));
const requests: LiveRequest[] = [];
let asked = () => {};
process.on("message", (request: LiveRequest) => {
  requests.push(request);
  asked();
});

const folder = process.argv[2]!;
const { database, close } = await throwAwayDatabase(folder).catch((error: Error) => {
  removeThrowAway(folder);
  throw error;
});
try {
  while (!over.signal.aborted) {
    const request = requests.shift();
    if (request) tell(await live(request));
    else await somethingComes();
  }
} finally {
  await close();
  if (process.connected) process.disconnect();
}

async function live({ seed, durationMs, traced }: LiveRequest): Promise<WorkerMessage> {
  const startedMs = performance.now();
  const listen = traced ? (line: string) => tell({ type: "line", line }) : undefined;
  try {
    const simulated = await simulateExactly({ database, seed, durationMs, listen, signal: over.signal });
    return { type: "lived", simulated, tookMs: performance.now() - startedMs };
  } catch (error) {
    const message = error instanceof SimulationFailure ? error.message : ((error as Error).stack ?? String(error));
    return { type: "failed", message };
  }
}

function somethingComes(): Promise<void> {
  return new Promise((resolve) => {
    asked = resolve;
    over.signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
