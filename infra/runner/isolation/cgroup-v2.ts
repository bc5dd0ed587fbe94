import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  childGroups,
  groupPids,
  makeGroup,
  parseOwnGroups,
  readKernelFile,
  readKernelNumber,
  removeGroup,
  tryWriteKernelFile,
  writeKernelFile,
} from "./cgroup-files.ts";
import type { CpuWeight, GroupLimits, LimitGroup, LimitGroups, NoGroups } from "./cgroups.ts";
import { killPid } from "./processes.ts";

const REQUIRED = ["memory", "pids"];

/**
 * Version 2 groups below the group that this process is in. That group may hold no process of its own once it hands
 * controllers down, so the host agent moves itself into a leaf first where that is needed.
 * @param base name of the host agent's own group, unique per agent
 * @param pid of the host agent
 */
export function cgroupV2(
  base: string,
  procSelfCgroup: string,
  pid: number,
  root = "/sys/fs/cgroup",
): LimitGroups | NoGroups {
  const own = parseOwnGroups(procSelfCgroup).get("");
  if (own === undefined || !existsSync(join(root, "cgroup.controllers")))
    return { kind: "none", reason: "control group v2 is not mounted" };
  const home = existsSync(join(root, own)) ? join(root, own) : root;
  const offered = words(join(home, "cgroup.controllers"));
  const missing = REQUIRED.filter((controller) => !offered.includes(controller));
  if (missing.length > 0)
    return { kind: "none", reason: `control group v2 does not delegate ${missing.join(" and ")} to ${own}` };
  const parent = join(home, base);
  try {
    handDown(home, offered, () => {
      const leaf = join(home, `${base}-host`);
      makeGroup(leaf);
      writeKernelFile(leaf, "cgroup.procs", pid);
    });
    makeParent(parent, offered);
  } catch (error) {
    return { kind: "none", reason: `control group v2 below ${own}: ${(error as Error).message}` };
  }
  return {
    kind: "cgroup-v2",
    homes: [home],
    create: (name, limits) => {
      makeParent(parent, offered); // it may have been swept away as empty
      return limited(join(parent, name), limits);
    },
    leftovers: () => childGroups(parent).map((name) => new GroupV2(join(parent, name), 0)),
    close: async () => void (await removeGroup(parent)),
  };
}

function makeParent(parent: string, offered: string[]): void {
  makeGroup(parent);
  handDown(parent, offered, () => {});
}

function words(path: string): string[] {
  return (readKernelFile(path) ?? "").split(/\s+/).filter(Boolean);
}

/** Enables the controllers for children; `vacate` is called when processes in the group are in the way. */
function handDown(directory: string, offered: string[], vacate: () => void): void {
  const wanted = [...REQUIRED, "cpu"].filter((controller) => offered.includes(controller));
  const enabled = words(join(directory, "cgroup.subtree_control"));
  const lacking = wanted.filter((controller) => !enabled.includes(controller));
  if (lacking.length === 0) return;
  const request = lacking.map((controller) => `+${controller}`).join(" ");
  if (tryWriteKernelFile(directory, "cgroup.subtree_control", request)) return;
  vacate();
  writeKernelFile(directory, "cgroup.subtree_control", request);
}

function limited(directory: string, limits: GroupLimits): LimitGroup {
  makeGroup(directory);
  writeKernelFile(directory, "memory.max", limits.memoryBytes);
  tryWriteKernelFile(directory, "memory.swap.max", 0);
  writeKernelFile(directory, "pids.max", limits.processes);
  const group = new GroupV2(directory, limits.cpuMillis);
  group.weigh("as limited");
  return group;
}

/** 100 is the weight of one core's worth; the kernel takes 1 to 10,000. */
function weightOf(cpuMillis: number): number {
  return Math.min(MOST_WEIGHT, Math.max(1, Math.round(cpuMillis / 10)));
}

const MOST_WEIGHT = 10_000;

class GroupV2 implements LimitGroup {
  readonly #directory: string;
  readonly #cpuMillis: number;

  /** `cpuMillis` is 0 for a leftover, whose limits nobody knows any more. */
  constructor(directory: string, cpuMillis: number) {
    this.#directory = directory;
    this.#cpuMillis = cpuMillis;
  }

  place(pid: number): void {
    writeKernelFile(this.#directory, "cgroup.procs", pid);
  }

  weigh(how: CpuWeight): void {
    tryWriteKernelFile(this.#directory, "cpu.weight", how === "first" ? MOST_WEIGHT : weightOf(this.#cpuMillis));
  }

  memoryBytes(): number | null {
    return readKernelNumber(join(this.#directory, "memory.current"));
  }

  cpuMs(): number | null {
    const microseconds = readKernelNumber(join(this.#directory, "cpu.stat"), "usage_usec");
    return microseconds === null ? null : Math.floor(microseconds / 1000);
  }

  outOfMemoryKills(): number {
    return readKernelNumber(join(this.#directory, "memory.events"), "oom_kill") ?? 0;
  }

  pids(): number[] {
    return groupPids(this.#directory);
  }

  kill(): void {
    // Kernels before 5.14 have no such file.
    if (existsSync(join(this.#directory, "cgroup.kill")) && tryWriteKernelFile(this.#directory, "cgroup.kill", 1))
      return;
    for (const pid of this.pids()) killPid(pid);
  }

  remove(): Promise<boolean> {
    return removeGroup(this.#directory);
  }
}
