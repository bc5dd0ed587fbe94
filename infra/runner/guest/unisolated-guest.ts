import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BWRAP_FD } from "../isolation/bubblewrap.ts";
import type { LimitGroup } from "../isolation/cgroups.ts";
import { closeWriteEnds, type OutputPipe } from "../isolation/fifo.ts";
import { allPids, isZombie, killPid, processorMs, proportionalMemoryBytes } from "../isolation/processes.ts";
import { withResourceLimits } from "../isolation/rlimits.ts";
import { SocketFolder } from "../isolation/socket-folder.ts";
import { CommandWatch } from "./command-watch.ts";
import { GuestControl } from "./control.ts";
import {
  type Guest,
  type GuestEnd,
  type GuestPlan,
  type GuestRuntime,
  type GuestUsage,
  INIT_OVERHEAD,
} from "./guest.ts";
import { sum } from "./namespace-usage.ts";

/** Every process of an unisolated guest has this in its environment, by which stragglers are found. */
const MARK = "NODUS_GUEST";

/**
 * Starts a command with limits but without namespaces, for a machine where an operator accepted that. Its processes are
 * found by control group, own uid or the mark in their environment; one that sheds all three escapes.
 */
export async function startUnisolatedGuest(plan: GuestPlan, runtime: GuestRuntime): Promise<Guest> {
  const watch = new CommandWatch(plan.command[0] ?? "");
  const folder = new SocketFolder(plan.run);
  const group =
    runtime.groups?.create(plan.name, {
      ...plan.limits,
      memoryBytes: plan.limits.memoryBytes + INIT_OVERHEAD.memoryBytes,
      processes: plan.limits.processes + INIT_OVERHEAD.processes,
    }) ?? null;
  const control: GuestControl = await GuestControl.listen(
    folder,
    (message) => watch.hear(message),
    () => {
      if (child.pid) group?.place(child.pid);
      control.tell({
        op: "start",
        ...{ command: plan.command, workingDirectory: plan.workingDirectory, env: { ...plan.env, [MARK]: plan.name } },
        ...{ stdoutFd: BWRAP_FD.stdout, stderrFd: BWRAP_FD.stderr, proxy: false, reach: "group" },
      });
    },
  );
  const pipes: [OutputPipe, OutputPipe] = [await runtime.pipes.take(), await runtime.pipes.take()];
  const child = spawnInit(plan, runtime, pipes);
  closeWriteEnds(pipes);
  return new UnisolatedGuest(plan, watch, control, folder, child, group, pipes);
}

function spawnInit(plan: GuestPlan, runtime: GuestRuntime, [stdout, stderr]: [OutputPipe, OutputPipe]): ChildProcess {
  const limits = {
    openFiles: plan.limits.openFiles,
    fileBytes: plan.limits.diskBytes,
    processes: plan.uid === null ? null : plan.limits.processes + INIT_OVERHEAD.processes,
  };
  const init = ["setpriv", "--no-new-privs", "--", runtime.node, "--max-old-space-size=64", runtime.init, plan.run];
  const [file = "", ...args] = withResourceLimits(limits, init);
  return spawn(file, args, {
    cwd: "/",
    env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", [MARK]: plan.name },
    ...(plan.uid === null ? {} : { uid: plan.uid, gid: plan.uid }),
    detached: true,
    stdio: ["ignore", "ignore", "ignore", "ignore", "ignore", "ignore", "ignore", stdout.writeFd, stderr.writeFd],
  });
}

class UnisolatedGuest implements Guest {
  readonly stdout: OutputPipe["reader"];
  readonly stderr: OutputPipe["reader"];
  readonly ended: Promise<GuestEnd>;
  readonly #plan: GuestPlan;
  readonly #watch: CommandWatch;
  readonly #control: GuestControl;
  readonly #init: ChildProcess;
  readonly #group: LimitGroup | null;

  constructor(
    plan: GuestPlan,
    watch: CommandWatch,
    control: GuestControl,
    folder: SocketFolder,
    init: ChildProcess,
    group: LimitGroup | null,
    [stdout, stderr]: [OutputPipe, OutputPipe],
  ) {
    this.stdout = stdout.reader;
    this.stderr = stderr.reader;
    this.#plan = plan;
    this.#watch = watch;
    this.#control = control;
    this.#init = init;
    this.#group = group;
    watch.onExit(() => this.kill());
    watch.onTimeout(() => this.kill());
    this.ended = this.#whenEnded(folder);
  }

  get started() {
    return this.#watch.started;
  }

  get commandOver(): boolean {
    return this.#watch.commandOver;
  }

  terminate(): void {
    this.#control.tell({ op: "signal", signal: "SIGTERM" });
  }

  kill(): void {
    // Init first: without it nothing new is started on the guest's behalf.
    this.#init.kill("SIGKILL");
    for (const pid of this.#processes()) killPid(pid);
  }

  usage(): GuestUsage {
    const pids = this.#processes();
    return {
      cpuMs: this.#group?.cpuMs() ?? sum(pids.map(processorMs)),
      memoryBytes: this.#group?.memoryBytes() ?? sum(pids.map(proportionalMemoryBytes)),
    };
  }

  async #whenEnded(folder: SocketFolder): Promise<GuestEnd> {
    const failure = await new Promise<string>((resolve) => {
      this.#init.once("exit", () => resolve("init ended before the command started"));
      this.#init.once("error", (error) => resolve(error.message));
    });
    for (let left = this.#processes(); left.length > 0; left = this.#processes()) {
      for (const pid of left) killPid(pid);
      await sleep(5);
    }
    this.#control.close();
    folder.close();
    const oomKills = this.#group?.outOfMemoryKills() ?? 0;
    await this.#group?.remove();
    this.#watch.over({ kind: "internal", message: failure });
    return this.#watch.end(oomKills > 0);
  }

  #processes(): number[] {
    const grouped = this.#group?.pids() ?? [];
    const marked = allPids().filter((pid) => isMarked(pid, this.#plan.name));
    return [...new Set([...grouped, ...marked])].filter((pid) => !isZombie(pid));
  }
}

function isMarked(pid: number, name: string): boolean {
  try {
    return readFileSync(join("/proc", String(pid), "environ"), "utf8")
      .split("\0")
      .includes(`${MARK}=${name}`);
  } catch {
    return false; // gone, or another user's
  }
}
