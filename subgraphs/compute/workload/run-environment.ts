import type { AdmittedConnection, PinnedSecret } from "../../data/published.ts";
import type { StageSpec } from "../stage/stage.entity.ts";
import { secretVariable } from "./validate/policy.ts";

/** What of a run's environment and network depends on what was found at admission. */
export type RunEnvironment = Pick<StageSpec, "secretEnv" | "env" | "network">;

/** The environment that secrets and the live connection give a stage, and the hosts that it must reach with them. */
export function runEnvironment(
  network: StageSpec["network"],
  secrets: readonly Pick<PinnedSecret, "name">[],
  live: AdmittedConnection | null,
  run: { workloadId: string; stageId: string; sweepId: string | undefined },
): RunEnvironment {
  const secretEnv = Object.fromEntries(secrets.map(({ name }) => [secretVariable(name), name]));
  if (!live) return { secretEnv, env: {}, network };
  return {
    secretEnv: { ...secretEnv, WANDB_API_KEY: live.credentialName },
    env: {
      WANDB_ENTITY: live.entity ?? "",
      WANDB_PROJECT: live.project ?? "",
      WANDB_RUN_GROUP: run.sweepId ?? run.workloadId,
      WANDB_NAME: `${run.workloadId}-${run.stageId}`,
      [`NODUS_CONN_${connectionVariable(live.name)}_KIND`]: live.kind,
    },
    network: { ...network, hosts: [...new Set([...live.egressHosts, ...network.hosts])] },
  };
}

/** A connection's name as part of a variable's. */
function connectionVariable(name: string): string {
  return name.toUpperCase().replaceAll("-", "_");
}
