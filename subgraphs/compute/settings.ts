import type { Micros } from "../../infra/kernel/micros.ts";

/** What an operator can set about compute; read once by the composition root. */
export interface ComputeSettings {
  /** Public origin for links and download paths, without a trailing slash. */
  publicUrl: string;
  /** Base URL that hosts reach intake at. */
  intakeUrl: string;
  feeBasisPoints: number;
  firstWindowMs: number;
  /** A workload that names no accelerator may run on a CPU offer. */
  cpuFallback: boolean;
  workloadNetwork: "open" | "allowlist" | "deny";
  /** Private hosts and CIDRs that guests may reach through the proxy. */
  allowPrivateHosts: string[];
  leaseMs: number;
  heartbeatIntervalMs: number;
  bootTimeoutMs: number;
  offerQuarantineMs: number;
  cancelGraceMs: number;
  logCaptureBytes: number;
  logCommittedBytes: number;
  /** Reserved when a workload does not say. */
  defaultCpuMillis: number;
  defaultMemoryMb: number;
  defaultDiskGb: number;
  newTeamCreditMicros: Micros;
  concurrentRunsLimit: number;
}
