import { createHash, hkdfSync, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/** The deployment's keys, all from one master key, so that there is one thing to back up and to share between processes. */
export interface DeploymentKeys {
  /** Wraps the data keys of stored secrets. */
  secrets: Buffer;
  /** Names the wrapping key beside what it wrapped. */
  secretsKeyId: string;
  /** Makes order tokens. */
  runner: Buffer;
  /** Signs actors between processes. */
  actor: Buffer;
}

/** Derives the deployment's keys from the master key that was given, or from the data folder's key file. */
export function deploymentKeys(given: Uint8Array | null, dataDir: string): DeploymentKeys {
  const master = given ? Buffer.from(given) : masterKeyFile(path.join(dataDir, "master.key"));
  const derive = (purpose: string) => Buffer.from(hkdfSync("sha256", master, "nodus", purpose, 32));
  const secrets = derive("secrets/1");
  return {
    secrets,
    secretsKeyId: createHash("sha256").update(secrets).digest("hex").slice(0, 16),
    runner: derive("runner/1"),
    actor: derive("actor/1"),
  };
}

/** Reads the key file, or makes it at the first start. Two starts at once end with one key. */
function masterKeyFile(file: string): Buffer {
  mkdirSync(path.dirname(file), { recursive: true });
  try {
    writeFileSync(file, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const key = Buffer.from(readFileSync(file, "utf8").trim(), "base64");
  if (key.length !== 32) throw new Error(`${file} does not hold a key of 32 bytes; restore it from a back-up`);
  return key;
}
