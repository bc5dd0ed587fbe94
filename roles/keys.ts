import { createHash, hkdfSync } from "node:crypto";
import type { MasterKey } from "../subgraphs/data/secret/secret-box.ts";
import { existingMasterKeyOf, masterKeyOf, otherMasterKeysOf } from "./master-key-file.ts";

/** The deployment's keys, all from one master key, so that there is one thing to back up and to share between processes. */
export interface DeploymentKeys {
  /** Wraps the data keys of stored secrets; its id stands beside what it wrapped. */
  secrets: MasterKey;
  /** Keys that only open: from before a change of the master key, or of one under way. */
  otherSecrets: MasterKey[];
  /** Makes order tokens. */
  runner: Buffer;
  /** Signs actors between processes. */
  actor: Buffer;
}

export interface KeySettings {
  dataDir: string;
  /** NODUS_MASTER_KEY; null for the data folder's key file. */
  masterKey: Uint8Array | null;
  /** NODUS_MASTER_KEY_PREVIOUS. */
  previousMasterKey: Uint8Array | null;
}

/** Derives the deployment's keys from the master key that was given, or from the data folder's key file. */
export function deploymentKeys({ dataDir, masterKey, previousMasterKey }: KeySettings): DeploymentKeys {
  const master = masterKey ?? masterKeyOf(dataDir);
  // A deployment that moves from a key file to a given key opens what the file's key wrapped.
  const fromFile = masterKey ? existingMasterKeyOf(dataDir) : null;
  const others = [previousMasterKey, fromFile, ...otherMasterKeysOf(dataDir)].filter((key) => key !== null);
  const secrets = secretsKeyOf(master);
  return {
    secrets,
    otherSecrets: others.map(secretsKeyOf).filter(({ id }) => id !== secrets.id),
    runner: derive(master, "runner/1"),
    actor: derive(master, "actor/1"),
  };
}

/** The key that wraps secrets, by the master key. */
export function secretsKeyOf(master: Uint8Array): MasterKey {
  const key = derive(master, "secrets/1");
  return { id: createHash("sha256").update(key).digest("hex").slice(0, 16), key };
}

function derive(master: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", master, "nodus", purpose, 32));
}
