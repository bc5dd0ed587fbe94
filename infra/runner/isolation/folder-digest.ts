import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";

/** What a host agent's folder is known by to other processes, in hex: the same by whichever links one comes to it. */
export function folderDigest(folder: string): string {
  return digestOf(realFolder(folder));
}

/** As `folderDigest`, of a path as it is spelt. */
export function digestOf(folder: string): string {
  return createHash("sha256").update(folder).digest("hex");
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder; // removed, or in another mount namespace: its spelling is all there is
  }
}
