/** What one guest may use, as the kernel can enforce it. */
export interface GroupLimits {
  /** Hard: a guest that needs more is killed by the kernel. */
  memoryBytes: number;
  /** A weight, not a cap: idle cores are anybody's. */
  cpuMillis: number;
  /** Tasks, which are processes and threads. */
  processes: number;
}

export type CpuWeight = "as limited" | "first";

/** The control group of one guest. */
export interface LimitGroup {
  /** Moves a process in; what it forks from then on is in as well. Throws when the process is gone. */
  place(pid: number): void;
  /**
   * How its processes are weighed against other guests' from now on: by the guest's limits, or before all others, which
   * is for as long as no code of the guest runs: before its command begins, and once all of it has got its SIGKILL. Not sooner:
   * the many processes of a fork bomb wait for each other, and do so the longer, the more of the processor they get.
   */
  weigh(how: CpuWeight): void;
  /** Null where the kernel does not tell. */
  memoryBytes(): number | null;
  cpuMs(): number | null;
  /** How many of its processes the kernel killed for memory. */
  outOfMemoryKills(): number;
  pids(): number[];
  /**
   * Sends SIGKILL to all that is in the group now. Where the kernel does not do that at once, what a member forks
   * meanwhile is missed: repeat it until nothing is left.
   */
  kill(): void;
  /** Removes the group. Waits until the kernel has let go of dead members; false when live ones keep it. */
  remove(): Promise<boolean>;
}

/** Control groups of one host agent. */
export interface LimitGroups {
  readonly kind: "cgroup-v2" | "cgroup-v1";
  create(name: string, limits: GroupLimits): LimitGroup;
  /** Directories in which this host agent's own groups are, and those of others that run in the same control group. */
  readonly homes: readonly string[];
  /** Groups that an earlier life left over, to be emptied and removed. */
  leftovers(): LimitGroup[];
  /** Removes the host agent's own groups, once no guest has one. */
  close(): Promise<void>;
}

/** Why no control groups can be had; a sentence for people. */
export interface NoGroups {
  kind: "none";
  reason: string;
}
