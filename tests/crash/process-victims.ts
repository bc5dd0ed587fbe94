import { setTimeout as sleep } from "node:timers/promises";
import { type Deployment, PROCESS_NAMES, type ProcessName } from "../support/deployment.ts";
import { killAll } from "../support/process-table.ts";
import type { Victim } from "./victims.ts";

/** Processes of a deployment, one at a time, both workers, or all that serve and work. */
export const PROCESS_VICTIMS = [
  "compute",
  "others",
  "intake",
  "worker",
  "both workers",
  "gateway",
  "guest host",
  "all",
] as const;
export type ProcessVictim = (typeof PROCESS_VICTIMS)[number];

/** A victim among separate processes: nobody but the test starts them again. */
export function apartVictim(name: ProcessVictim, deployment: Deployment, random: (below: number) => number): Victim {
  if (name === "guest host") {
    const agents = deployment.hostAgents();
    return { strike: () => killAll(agents), recover: async () => {} };
  }
  const names = processesOf(name);
  return {
    strike: () => {
      for (const one of names) deployment.signal(one, "SIGKILL");
    },
    recover: async () => {
      await Promise.all(names.map((one) => deployment.end(one)));
      await sleep(random(800));
      await Promise.all(names.map((one) => deployment.start(one)));
    },
  };
}

function processesOf(name: Exclude<ProcessVictim, "guest host">): readonly ProcessName[] {
  if (name === "both workers") return ["worker", "worker-2"];
  if (name === "all") return PROCESS_NAMES.filter((one) => one !== "host-agent");
  return [name];
}
