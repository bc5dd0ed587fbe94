import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Text of a kernel file without the last line break; null when it does not exist or may not be read. */
export function readKernelFile(path: string): string | null {
  try {
    return readFileSync(path, "utf8").trimEnd();
  } catch {
    return null;
  }
}

/** The number after `key` in a file of `key value` lines, or the whole file when no key is given. */
export function readKernelNumber(path: string, key?: string): number | null {
  const text = readKernelFile(path);
  const found =
    key === undefined
      ? text
      : text
          ?.split("\n")
          .find((line) => line.startsWith(`${key} `))
          ?.slice(key.length + 1);
  const value = Number(found);
  return found && Number.isFinite(value) ? value : null;
}

export function writeKernelFile(directory: string, file: string, value: string | number): void {
  writeFileSync(join(directory, file), String(value));
}

/** False when the kernel has no such file, such as a swap limit on a machine without swap accounting. */
export function tryWriteKernelFile(directory: string, file: string, value: string | number): boolean {
  try {
    writeKernelFile(directory, file, value);
    return true;
  } catch {
    return false;
  }
}

export function makeGroup(directory: string): void {
  mkdirSync(directory, { recursive: true });
}

export function childGroups(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    return [];
  }
}

export function groupPids(directory: string): number[] {
  return (readKernelFile(join(directory, "cgroup.procs")) ?? "").split("\n").filter(Boolean).map(Number);
}

/** A group is busy for a moment after its last process died. */
export async function removeGroup(directory: string): Promise<boolean> {
  for (let attempt = 0; attempt < 50; attempt++) {
    try {
      rmdirSync(directory);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
      await sleep(10);
    }
  }
  return false;
}

/** Where a process is in each hierarchy: controllers (comma-joined, empty for v2) → path. */
export function parseOwnGroups(procSelfCgroup: string): Map<string, string> {
  const groups = new Map<string, string>();
  for (const line of procSelfCgroup.split("\n")) {
    const match = /^\d+:([^:]*):(.*)$/.exec(line);
    if (match) groups.set(match[1]!, match[2]!);
  }
  return groups;
}
