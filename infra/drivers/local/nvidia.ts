import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { promisify } from "node:util";
import { familyOf } from "./accelerators.ts";

export interface InstalledGpu {
  /** Canonical family, or the driver's own name where that is not known. */
  family: string;
  memoryGb: number;
}

/** Libraries and compilers prove no device, so they are not looked at. */
export type GpuFinding =
  | { status: "none" }
  | { status: "broken"; evidence: string }
  | { status: "present"; gpus: InstalledGpu[] };

const TIMEOUT_MS = 3_000;

/** NVIDIA devices of this machine, as its driver tells. */
export async function findNvidiaGpus(): Promise<GpuFinding> {
  const devices = readdirSync("/dev").filter((name) => /^nvidia\d+$/.test(name));
  try {
    const query = ["--query-gpu=name,memory.total", "--format=csv,noheader,nounits"];
    const { stdout } = await promisify(execFile)("nvidia-smi", query, { timeout: TIMEOUT_MS, killSignal: "SIGKILL" });
    const gpus = parseNvidiaSmi(stdout);
    return gpus.length > 0 ? { status: "present", gpus } : { status: "none" };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const absent = code === "ENOENT" && devices.length === 0;
    return absent
      ? { status: "none" }
      : {
          status: "broken",
          evidence: code === "ENOENT" ? `${devices.length} devices without nvidia-smi` : message.slice(0, 200),
        };
  }
}

/** Lines of `name, MiB`. */
export function parseNvidiaSmi(csv: string): InstalledGpu[] {
  return csv.split("\n").flatMap((line) => {
    const match = /^\s*(.+?)\s*,\s*(\d+)\s*$/.exec(line);
    return match ? [{ family: familyOf(match[1]!) ?? match[1]!, memoryGb: Math.round(Number(match[2]) / 1024) }] : [];
  });
}
