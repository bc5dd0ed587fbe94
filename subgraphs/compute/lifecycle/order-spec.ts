import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { OrderSpec, StagedObject } from "../../../infra/runner/protocol.ts";
import type { Attempt, Placement } from "../placement/placement.entity.ts";
import type { ComputeSettings } from "../settings.ts";
import type { PinnedAssetSpec, Stage } from "../stage/stage.entity.ts";

const MIB = 1024 * 1024;

/** What a host needs to run this generation, from what admission resolved and placement reserved. */
export function orderSpec(stage: Stage, placement: Placement, attempt: Attempt, settings: ComputeSettings): OrderSpec {
  const { spec } = stage;
  return {
    orderId: attempt.id,
    workloadId: stage.workloadId,
    stageId: stage.stageId,
    generation: placement.generation,
    image: spec.image,
    command: spec.command,
    env: spec.env ?? {},
    secretEnv: Object.keys(spec.secretEnv),
    source: spec.sourceAsset && stagedObject(spec.sourceAsset),
    inputs: spec.inputs.map(({ name, asset }) => ({ name, object: stagedObject(asset) })),
    outputs: spec.outputs,
    limits: {
      cpuMillis: attempt.cpuMillis,
      memoryBytes: attempt.memoryMb * MIB,
      diskBytes: (spec.diskGb || settings.defaultDiskGb) * 1024 * MIB,
      tmpBytes: LIMITS.guestTmpBytes,
      processes: LIMITS.guestProcesses,
      openFiles: LIMITS.guestOpenFiles,
      logCaptureBytes: settings.logCaptureBytes,
      logCommittedBytes: settings.logCommittedBytes,
      cancelGraceMs: settings.cancelGraceMs,
      outputBytes: LIMITS.outputBytes,
    },
    network: spec.network,
    accelerator: placement.accelerator
      ? { model: placement.accelerator, count: placement.gpuCount, simulated: placement.simulated }
      : null,
  };
}

/** Objects that an order may fetch, by hash. */
export function stagedObjects(stage: Stage): Map<string, StagedObject> {
  const assets = [
    ...(stage.spec.sourceAsset ? [stage.spec.sourceAsset] : []),
    ...stage.spec.inputs.map((i) => i.asset),
  ];
  return new Map(assets.map((asset) => [asset.sha256, stagedObject(asset)]));
}

function stagedObject(asset: PinnedAssetSpec): StagedObject {
  return { sha256: asset.sha256, bytes: asset.bytes, format: asset.format, name: asset.name };
}
