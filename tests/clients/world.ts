import { writeFileSync } from "node:fs";
import path from "node:path";
import { projectFile } from "../../infra/telemetry/project-root.ts";
import { ADMIN_KEY, Platform } from "../support/platform.ts";
import { newDataFolder } from "../support/platform-place.ts";
import { openOutside } from "./outside.ts";

/** A platform, and servers of this machine that stand for the outside world. */
export interface World {
  readonly platform: Platform;
  readonly apiKey: string;
  /** What the checks in Python are told about the outside. */
  readonly settings: Readonly<Record<string, string>>;
  /** Where checks may put files; removed with everything else. */
  readonly folder: string;
  close(): Promise<void>;
}

/** Starts all of it on a fresh data folder. Needs the `openssl` program. */
export async function openWorld(): Promise<World> {
  const outside = await openOutside();
  const folder = newDataFolder();
  const put = (name: string, text: string) => {
    writeFileSync(path.join(folder, name), text, { mode: 0o644 });
    return path.join(folder, name);
  };
  const trust = {
    NODE_EXTRA_CA_CERTS: put("authority.pem", outside.caPem),
    NODUS_ALLOW_PRIVATE_HOSTS: "localhost",
  };
  const settings = {
    ...outside.facts,
    certFile: put("receiver.pem", outside.receiver.certPem),
    keyFile: put("receiver.key", outside.receiver.keyPem),
    verifyExample: projectFile("docs", "examples", "verify-webhook.py"),
  };
  try {
    const platform = await Platform.start({ ...outside.services, ...trust }, { dataDir: folder });
    const close = async () => {
      await platform.dispose();
      await outside.close();
    };
    return { platform, apiKey: ADMIN_KEY, settings, folder, close };
  } catch (error) {
    await outside.close();
    throw error;
  }
}
