import { mkdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import type { Agreement } from "../infra/db/agreement.ts";
import { hostFolder } from "../infra/runner/host/host-folder.ts";
import type { Settings } from "../infra/telemetry/environment.ts";
import type { DeploymentKeys } from "./keys.ts";
import type { ProcessPlan } from "./process-plan.ts";

/** What this process must have like every other process of its deployment; nothing for one that runs alone. */
export function agreementsOf(settings: Settings, plan: ProcessPlan, keys: DeploymentKeys): Agreement[] {
  if (plan.alone) return [];
  return [masterKeyAgreement(keys), objectStore(settings), ...(plan.worker ? [localCapacity(settings)] : [])];
}

/** All processes have one master key. */
export function masterKeyAgreement(keys: DeploymentKeys): Agreement {
  return {
    subject: "masterKey",
    value: keys.secrets.id,
    refusal:
      "Another process of this deployment runs with another master key. Give all of them the same NODUS_MASTER_KEY, " +
      "or the same data folder (NODUS_DATA_DIR) on one host.",
  };
}

function objectStore({ s3Endpoint, s3Bucket, dataDir }: Settings): Agreement {
  return {
    subject: "objectStore",
    value: s3Endpoint ? `${s3Endpoint}/${s3Bucket}` : folderIdentity(path.join(dataDir, "objects")),
    refusal:
      "Another process of this deployment keeps its objects elsewhere. Files are for one host: give all processes there " +
      "the same NODUS_DATA_DIR, or all of them the same S3 store (S3_ENDPOINT and S3_BUCKET).",
  };
}

function localCapacity({ localCapacity: mode, dataDir }: Settings): Agreement {
  return {
    subject: "localCapacity",
    value: mode === "off" ? "off" : folderIdentity(hostFolder(dataDir)),
    refusal:
      "Another worker of this deployment drives another machine. Any worker may get any job, so either all of them share " +
      "one host agent (the same NODUS_DATA_DIR on one host), or NODUS_LOCAL_CAPACITY is off for all.",
  };
}

/** Tells one folder from all others, also for processes in containers of one host that mount it under different paths. */
function folderIdentity(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const { dev, ino } = statSync(folder);
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return `${boot}:${dev}:${ino}`;
}
