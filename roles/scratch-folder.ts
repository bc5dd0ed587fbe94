import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import path from "node:path";

/** Longer than any upload takes: what is older was left by a process that died. */
const LEFTOVER_MS = 24 * 3_600_000;

/** A folder of this process for uploads on their way. */
export interface ScratchFolder {
  readonly path: string;
  remove(): void;
}

/**
 * Makes the process's scratch folder. What crashed processes left behind goes: at once where this one is `alone`, else
 * when it is so old that no other process can be using it.
 */
export function scratchFolder(dataDir: string, alone: boolean): ScratchFolder {
  const all = path.join(dataDir, "scratch");
  mkdirSync(all, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(all)) {
    const leftover = path.join(all, name);
    if (alone || ageMs(leftover) > LEFTOVER_MS) rmSync(leftover, { recursive: true, force: true });
  }
  const folder = mkdtempSync(path.join(all, "process-"));
  return { path: folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function ageMs(file: string): number {
  const found = statSync(file, { throwIfNoEntry: false }); // another process may remove it at this moment
  return found ? Date.now() - found.mtimeMs : 0;
}
