import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { placedOutside, placeOutside } from "../../kernel/shared-folder.ts";
import { passableByAll } from "./guest-binaries.ts";

/**
 * The folder of a platform's host agent: `<dataDir>/host`, or one outside where root has its data in a private home,
 * since each guest of root has a user of its own.
 */
export function hostFolder(dataDir: string, root = process.getuid?.() === 0): string {
  mkdirSync(dataDir, { recursive: true });
  const folder = realpathSync(dataDir);
  const outside = placedOutside(folder, "host");
  if (outside) return outside;
  return root && !passableByAll(folder) ? placeOutside(folder, "host") : join(folder, "host");
}
