import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  childGroups,
  groupPids,
  makeGroup,
  parseOwnGroups,
  readKernelNumber,
  removeGroup,
  tryWriteKernelFile,
  writeKernelFile,
} from "./cgroup-files.ts";
import type { CpuWeight, GroupLimits, LimitGroup, LimitGroups, NoGroups } from "./cgroups.ts";
import { killPid } from "./processes.ts";

/** Without these two a guest could starve the machine; the others are a gain where they are. */
const REQUIRED = ["memory", "pids"] as const;
const OPTIONAL = ["cpu", "cpuacct"] as const;

type Directories = Map<string, string>;

/**
 * Version 1 groups, one directory per controller, below the group that this process itself is in.
 * @param base name of the host agent's own group, unique per agent
 */
export function cgroupV1(base: string, procSelfCgroup: string, root = "/sys/fs/cgroup"): LimitGroups | NoGroups {
  const own = parseOwnGroups(procSelfCgroup);
  const parents: Directories = new Map();
  for (const [controllers, path] of own) {
    for (const controller of controllers.split(",")) {
      if (![...REQUIRED, ...OPTIONAL].includes(controller as "memory")) continue;
      // A container may see a path that its mount does not have; then its mount's root is its group.
      const below = join(root, controller, path);
      parents.set(controller, join(existsSync(below) ? below : join(root, controller), base));
    }
  }
  for (const controller of REQUIRED) {
    const parent = parents.get(controller);
    if (!parent || !existsSync(join(parent, "..")))
      return { kind: "none", reason: `control group v1 has no ${controller} controller` };
  }
  for (const [controller, parent] of parents) {
    try {
      makeGroup(parent);
    } catch (error) {
      if (REQUIRED.includes(controller as "memory"))
        return { kind: "none", reason: `control group ${parent}: ${(error as Error).message}` };
      parents.delete(controller);
    }
  }
  return {
    kind: "cgroup-v1",
    homes: [...parents.values()].map((parent) => dirname(parent)),
    create: (name, limits) => limited(directoriesOf(parents, name), limits),
    leftovers: () => childGroups(parents.get("memory")!).map((name) => new GroupV1(directoriesOf(parents, name), 0)),
    close: async () => void (await Promise.all([...parents.values()].map(removeGroup))),
  };
}

function directoriesOf(parents: Directories, name: string): Directories {
  return new Map([...parents].map(([controller, parent]) => [controller, join(parent, name)]));
}

function limited(directories: Directories, limits: GroupLimits): LimitGroup {
  for (const directory of directories.values()) makeGroup(directory);
  const memory = directories.get("memory")!;
  writeKernelFile(memory, "memory.limit_in_bytes", limits.memoryBytes);
  tryWriteKernelFile(memory, "memory.memsw.limit_in_bytes", limits.memoryBytes);
  writeKernelFile(directories.get("pids")!, "pids.max", limits.processes);
  const group = new GroupV1(directories, limits.cpuMillis);
  group.weigh("as limited");
  return group;
}

/** 1,024 is the weight of one core's worth; the kernel takes 2 to 262,144. */
function sharesOf(cpuMillis: number): number {
  return Math.min(MOST_SHARES, Math.max(2, Math.round((cpuMillis * 1024) / 1000)));
}

const MOST_SHARES = 262_144;

class GroupV1 implements LimitGroup {
  readonly #directories: Directories;
  readonly #cpuMillis: number;

  /** `cpuMillis` is 0 for a leftover, whose limits nobody knows any more. */
  constructor(directories: Directories, cpuMillis: number) {
    this.#directories = directories;
    this.#cpuMillis = cpuMillis;
  }

  place(pid: number): void {
    for (const directory of this.#directories.values()) writeKernelFile(directory, "cgroup.procs", pid);
  }

  weigh(how: CpuWeight): void {
    const directory = this.#directories.get("cpu");
    if (directory)
      tryWriteKernelFile(directory, "cpu.shares", how === "first" ? MOST_SHARES : sharesOf(this.#cpuMillis));
  }

  memoryBytes(): number | null {
    return readKernelNumber(join(this.#directories.get("memory")!, "memory.usage_in_bytes"));
  }

  cpuMs(): number | null {
    const directory = this.#directories.get("cpuacct");
    const nanoseconds = directory ? readKernelNumber(join(directory, "cpuacct.usage")) : null;
    return nanoseconds === null ? null : Math.floor(nanoseconds / 1e6);
  }

  outOfMemoryKills(): number {
    return readKernelNumber(join(this.#directories.get("memory")!, "memory.oom_control"), "oom_kill") ?? 0;
  }

  pids(): number[] {
    return groupPids(this.#directories.get("pids")!);
  }

  kill(): void {
    for (const pid of this.pids()) killPid(pid);
  }

  async remove(): Promise<boolean> {
    const removed = await Promise.all([...this.#directories.values()].map(removeGroup));
    return removed.every(Boolean);
  }
}
