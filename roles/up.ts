import type { Settings } from "../infra/telemetry/environment.ts";
import { planProcess } from "./process-plan.ts";
import { makeDataFolder, seeServers } from "./reachable.ts";

/**
 * Starts what the settings' roles name, in this process. Resolves once it serves; it runs until a signal ends it. Throws
 * `SettingsError` for settings that do not go together and `UnreachableServer` for ones that lead nowhere, before anything
 * starts. A role's code is loaded when it is known to be needed: everything takes more than a second to load.
 */
export async function up(settings: Settings): Promise<void> {
  if (isHostAgent(settings)) {
    makeDataFolder(settings);
    const { superviseHostAgent } = await import("./host-agent.ts");
    return superviseHostAgent(settings);
  }
  const plan = planProcess(settings);
  makeDataFolder(settings);
  await seeServers(settings);
  const { startProcess } = await import("./start-process.ts");
  await startProcess(settings, plan);
}

function isHostAgent({ roles }: Settings): boolean {
  return roles.length === 1 && roles[0] === "host-agent";
}
