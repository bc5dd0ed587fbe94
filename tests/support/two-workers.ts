import { Deployment, type Layout } from "./deployment.ts";

/** The processes of a deployment in which one worker may be stopped while the other goes on. */
type Process = "graph" | "worker" | "worker-2" | "host-agent";
export type TwoWorkers = Deployment<Process>;

const TWO_WORKERS: Layout<Process> = {
  processes: {
    graph: { args: ["up"], settings: { NODUS_ROLES: "gateway,intake,compute,sandboxes,rl,pools,data" } },
    worker: { args: ["worker"] },
    "worker-2": { args: ["worker"] },
    "host-agent": { args: ["host-agent"] },
  },
  environment: (originOf) => ({
    NODUS_PUBLIC_URL: originOf("graph"),
    NODUS_INTAKE_URL: originOf("graph"),
    NODUS_CPU_FALLBACK: "1",
    NODUS_LOCAL_CAPACITY: "attach",
  }),
};

/** Starts two workers beside a process that answers and one that has the machines; `settings` are for all of them. */
export function startTwoWorkers(settings: Readonly<Record<string, string>> = {}): Promise<TwoWorkers> {
  return Deployment.laidOut(TWO_WORKERS, settings);
}
