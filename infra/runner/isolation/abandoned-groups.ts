import { readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { childGroups } from "./cgroup-files.ts";
import { digestOf, folderDigest } from "./folder-digest.ts";
import { allPids } from "./processes.ts";

/** A host agent's own group, and the leaf that it may have moved itself into. */
const OWN_GROUP = /^nodus-([0-9a-f]{12})(?:-host)?$/;

/** What sets a host agent apart from others of its machine: its groups and its range of user ids bear it. */
export function hostAgentName(folder: string): string {
  return nameOf(folderDigest(folder));
}

/** A name is the beginning of what the lock of the agent's folder ends with. */
function nameOf(digest: string): string {
  return digest.slice(0, 12);
}

/**
 * Removes what host agents that were killed have left in `homes`: groups of an agent that no process is any more. Nothing
 * is ended by it: a group with a process in it stays, with all above it, until it is swept some other time.
 */
export function sweepAbandonedGroups(homes: readonly string[], living = livingHostAgents): void {
  const found = homes.flatMap((home) => agentGroups(home));
  if (found.length === 0) return;
  // Asked once the groups are known: an agent takes its lock before it makes one.
  const names = living();
  for (const { directory, name } of found) {
    if (names.has(name)) continue;
    for (const guest of childGroups(directory)) removeEmpty(join(directory, guest));
    removeEmpty(directory);
  }
}

/** Groups of host agents, living or not, with their agents' names. */
function agentGroups(home: string): { directory: string; name: string }[] {
  return childGroups(home).flatMap((group) => {
    const name = OWN_GROUP.exec(group)?.[1];
    return name === undefined ? [] : [{ directory: join(home, group), name }];
  });
}

function removeEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // Busy, gone meanwhile, or another user's.
  }
}

/** Names of the host agents that live: each holds the lock of its folder, or its command line names the folder. */
export function livingHostAgents(): ReadonlySet<string> {
  return new Set([...locks(), ...allPids().flatMap(digestsOfAgent)].map(nameOf));
}

/** What the locks of host agents in this network namespace end with. */
function locks(): string[] {
  const sockets = readFileSync("/proc/net/unix", "utf8");
  return [...sockets.matchAll(/@nodus-host-([0-9a-f]+)/g)].map(([, digest]) => digest!);
}

/** Also of an agent in another network namespace; none for any other process. One of an earlier release went by the spelling. */
function digestsOfAgent(pid: number): string[] {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    const option = words.indexOf("--folder");
    if (option < 0) return [];
    const folder = words[option + 1] ?? "";
    return [folderDigest(folder), digestOf(folder)];
  } catch {
    return []; // gone, or another user's
  }
}
