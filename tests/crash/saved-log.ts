import { expect } from "vitest";
import type { PlatformClient } from "../support/platform-client.ts";

/**
 * Waits for a settled workload's log to be this one. An earlier generation's log is shown for as long as it is committed
 * and the last one's is not, which follows shortly.
 */
export async function expectSavedLog(client: PlatformClient, id: string, log: string, message = ""): Promise<void> {
  const saved = async () => (await client.rest("getWorkloadLogs", { path: { id } })).body;
  await expect.poll(saved, { timeout: 30_000, message }).toBe(log);
}
