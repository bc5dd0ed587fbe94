import type { Dirent } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** More entries than this are taken for an attack on the file system's inodes. */
const MAX_ENTRIES = 1_000_000;
const SHORTEST_PAUSE_MS = 1_000;
/** Too deep for a path, or closed by the guest to a host that is not root: files could hide there. */
const UNMEASURABLE = new Set(["ENAMETOOLONG", "EACCES"]);
/** A scan may take this part of the time at most. */
const DUTY = 20;

interface Watched {
  folder: string;
  limitBytes: number;
  exceeded: () => void;
  usedBytes: number;
  dueMs: number;
}

export interface DiskUse {
  readonly usedBytes: number;
  stop(): void;
}

/**
 * Measures the folders of all guests, one after another, and tells when one holds more than it may. Folders change while
 * they are read, so a figure may be off by what was written meanwhile; a limit is exceeded for a few seconds at most.
 */
export class DiskWatch {
  readonly #watched = new Set<Watched>();
  #scanning = false;
  #closed = false;

  watch(folder: string, limitBytes: number, exceeded: () => void): DiskUse {
    const watched: Watched = {
      folder,
      limitBytes,
      exceeded,
      usedBytes: 0,
      dueMs: performance.now() + SHORTEST_PAUSE_MS,
    };
    this.#watched.add(watched);
    void this.#scan();
    return {
      get usedBytes() {
        return watched.usedBytes;
      },
      stop: () => this.#watched.delete(watched),
    };
  }

  close(): void {
    this.#closed = true;
    this.#watched.clear();
  }

  async #scan(): Promise<void> {
    if (this.#scanning) return;
    this.#scanning = true;
    while (!this.#closed && this.#watched.size > 0) {
      const next = [...this.#watched].reduce((a, b) => (b.dueMs < a.dueMs ? b : a));
      const waitMs = next.dueMs - performance.now();
      if (waitMs > 0) await sleep(Math.min(waitMs, SHORTEST_PAUSE_MS), undefined, { ref: false });
      else if (this.#watched.has(next)) await measure(next);
    }
    this.#scanning = false;
  }
}

async function measure(watched: Watched): Promise<void> {
  const beganMs = performance.now();
  const used = await diskUse(watched.folder, watched.limitBytes);
  const tookMs = performance.now() - beganMs;
  watched.usedBytes = used;
  watched.dueMs = performance.now() + Math.max(SHORTEST_PAUSE_MS, tookMs * DUTY);
  if (used > watched.limitBytes) watched.exceeded();
}

/**
 * Bytes on disk below a folder, links not followed. Ends early once it is over `enoughBytes`. A tree that can't be
 * measured, being too deep, closed or of too many entries, counts as infinitely large.
 */
async function diskUse(folder: string, enoughBytes = Number.POSITIVE_INFINITY): Promise<number> {
  let bytes = 0;
  let entries = 0;
  const pending = [folder];
  for (let path = pending.pop(); path !== undefined && bytes <= enoughBytes; path = pending.pop()) {
    let children: Dirent[];
    try {
      children = await readdir(path, { withFileTypes: true });
    } catch (error) {
      if (UNMEASURABLE.has((error as NodeJS.ErrnoException).code ?? "")) return Number.POSITIVE_INFINITY;
      continue; // removed meanwhile
    }
    entries += children.length;
    if (entries > MAX_ENTRIES) return Number.POSITIVE_INFINITY;
    for (let from = 0; from < children.length; from += 64) {
      const batch = children.slice(from, from + 64);
      const sizes = await Promise.all(batch.map((child) => blocksOf(join(path, child.name))));
      bytes += sizes.reduce((total, size) => total + size, 0);
      for (const child of batch) if (child.isDirectory()) pending.push(join(path, child.name));
    }
  }
  return bytes;
}

async function blocksOf(path: string): Promise<number> {
  try {
    return (await lstat(path)).blocks * 512;
  } catch (error) {
    return UNMEASURABLE.has((error as NodeJS.ErrnoException).code ?? "") ? Number.POSITIVE_INFINITY : 0;
  }
}
