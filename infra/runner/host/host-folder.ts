import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { passableByAll } from "./guest-binaries.ts";

/** Where a host agent's folder goes when guests' users can't pass through the data folder. */
const SHARED_FOLDER = "/var/lib/nodus";

/**
 * The folder of a platform's host agent: `<dataDir>/host`, or one below `SHARED_FOLDER` where root has its data in a
 * private home, since each guest of root has a user of its own. `<dataDir>/host.location` says where then, so a data
 * folder that is moved or opened later still finds its host agent.
 */
export function hostFolder(dataDir: string, root = process.getuid?.() === 0): string {
  mkdirSync(dataDir, { recursive: true });
  const real = realpathSync(dataDir);
  const home = join(real, "host");
  const signpost = `${home}.location`;
  if (existsSync(signpost)) return readFileSync(signpost, "utf8").trim();
  if (!root || passableByAll(real)) return home;
  const own = join(SHARED_FOLDER, createHash("sha256").update(home).digest("hex").slice(0, 12));
  for (const folder of [SHARED_FOLDER, own]) {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o755); // whatever this process's umask is
  }
  const elsewhere = join(own, "host");
  writeFileSync(signpost, `${elsewhere}\n`);
  return elsewhere;
}
