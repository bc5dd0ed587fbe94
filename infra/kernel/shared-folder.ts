import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";

/** Where things go that other accounts must reach although the clone or its data folder is private. */
export const SHARED_FOLDER = "/var/lib/nodus";

/** Where a part of a data folder was put outside it, as `<dataDir>/<part>.location` says; null when it was not. */
export function placedOutside(dataDir: string, part: string): string | null {
  const signpost = signpostOf(dataDir, part);
  return existsSync(signpost) ? readFileSync(signpost, "utf8").trim() : null;
}

/**
 * Puts a part of a data folder below `SHARED_FOLDER`, and leaves a signpost, so that a data folder that is moved still
 * finds it. A data folder that was removed and made again is another one: it starts with nothing.
 */
export function placeOutside(dataDir: string, part: string): string {
  const { dev, ino, birthtimeNs } = statSync(dataDir, { bigint: true });
  const identity = [path.resolve(dataDir), dev, ino, birthtimeNs].join(" ");
  const own = path.join(SHARED_FOLDER, createHash("sha256").update(identity).digest("hex").slice(0, 12));
  for (const folder of [SHARED_FOLDER, own]) {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o755); // whatever this process's umask is
  }
  const place = path.join(own, part);
  writeFileSync(signpostOf(dataDir, part), `${place}\n`);
  return place;
}

function signpostOf(dataDir: string, part: string): string {
  return path.join(dataDir, `${part}.location`);
}
