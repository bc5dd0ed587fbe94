import { LIMITS } from "../infra/kernel/limits.ts";
import type { Settings } from "../infra/telemetry/environment.ts";
import type { ComputeSettings } from "../subgraphs/compute/settings.ts";

const MIB = 1024 * 1024;

/** What compute takes from the settings. `origin` is where this process is reached, once it listens. */
export function computeSettings(settings: Settings, origin: string): ComputeSettings {
  return {
    publicUrl: settings.publicUrl ?? origin,
    intakeUrl: `${settings.intakeUrl ?? origin}/runner/v1`,
    feeBasisPoints: settings.platformFeeBasisPoints,
    firstWindowMs: settings.firstWindowSeconds * 1000,
    cpuFallback: settings.cpuFallback,
    workloadNetwork: settings.workloadNetwork,
    allowPrivateHosts: [...settings.allowPrivateHosts],
    leaseMs: LIMITS.leaseMs,
    heartbeatIntervalMs: LIMITS.heartbeatIntervalMs,
    bootTimeoutMs: LIMITS.bootTimeoutMs,
    offerQuarantineMs: LIMITS.offerQuarantineMs,
    cancelGraceMs: LIMITS.cancelGraceMs,
    logCaptureBytes: settings.logCaptureMib * MIB,
    logCommittedBytes: settings.logCommittedMib * MIB,
    defaultCpuMillis: 100,
    defaultMemoryMb: 512,
    defaultDiskGb: 10,
    newTeamCreditMicros: settings.newTeamCreditMicros,
    concurrentRunsLimit: 1_000,
  };
}
