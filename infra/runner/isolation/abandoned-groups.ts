import { createHash } from "node:crypto";
import { readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { childGroups } from "./cgroup-files.ts";
import { allPids } from "./processes.ts";

/** A host agent's own group, and the leaf that it may have moved itself into. */
const OWN_GROUP = /^nodus-([0-9a-f]{12})(?:-host)?$/;

/** What sets a host agent apart from others of its machine: its groups and its range of user ids bear it. */
export function hostAgentName(folder: string): string {
  return createHash("sha256").update(folder).digest("hex").slice(0, 12);
}

/**
 * Removes what host agents that were killed have left in `homes`: groups of an agent that no process is any more. Nothing
 * is ended by it: a group with a process in it stays, with all above it, until it is swept some other time.
 */
export function sweepAbandonedGroups(homes: readonly string[], isAlive = hostAgentLives): void {
  for (const home of homes) {
    for (const group of childGroups(home)) {
      const [, name] = OWN_GROUP.exec(group) ?? [];
      if (name === undefined || isAlive(name)) continue;
      const directory = join(home, group);
      for (const guest of childGroups(directory)) removeEmpty(join(directory, guest));
      removeEmpty(directory);
    }
  }
}

function removeEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // Busy, gone meanwhile, or another user's.
  }
}

/** Whether a host agent of that name lives: it holds the lock of its folder, or its command line names the folder. */
export function hostAgentLives(name: string): boolean {
  return locks().some((digest) => digest.startsWith(name)) || allPids().some((pid) => nameOfAgent(pid) === name);
}

/** What the locks of host agents in this network namespace end with. */
function locks(): string[] {
  const sockets = readFileSync("/proc/net/unix", "utf8");
  return [...sockets.matchAll(/@nodus-host-([0-9a-f]+)/g)].map(([, digest]) => digest!);
}

/** Also of an agent in another network namespace. Null for any other process. */
function nameOfAgent(pid: number): string | null {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    const option = words.indexOf("--folder");
    return option < 0 ? null : hostAgentName(words[option + 1] ?? "");
  } catch {
    return null; // gone, or another user's
  }
}
