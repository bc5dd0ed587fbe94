import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BWRAP_FD } from "../isolation/bubblewrap.ts";
import { closeWriteEnds, type OutputPipe } from "../isolation/fifo.ts";
import { allPids, isZombie, killPid, processorMs, proportionalMemoryBytes } from "../isolation/processes.ts";
import { withResourceLimits } from "../isolation/rlimits.ts";
import { SocketFolder } from "../isolation/socket-folder.ts";
import { CommandWatch } from "./command-watch.ts";
import { GuestControl } from "./control.ts";
import type { Guest, GuestEnd, GuestPlan, GuestRuntime, GuestUsage } from "./guest.ts";
import { sum } from "./namespace-usage.ts";
import { type GuestParts, groupLimits, HOST_PATH, processLimits, SupervisedGuest } from "./supervised-guest.ts";

/** Every process of an unisolated guest has this in its environment, by which stragglers are found. */
const MARK = "NODUS_GUEST";

/**
 * Starts a command with limits but without namespaces, for a machine where an operator accepted that. Its processes are
 * found by control group, own uid or the mark in their environment; one that sheds all three escapes.
 */
export async function startUnisolatedGuest(plan: GuestPlan, runtime: GuestRuntime): Promise<Guest> {
  const watch = new CommandWatch(plan.command[0] ?? "");
  const folder = new SocketFolder(plan.run);
  const group = runtime.groups?.create(plan.name, groupLimits(plan)) ?? null;
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
  return new UnisolatedGuest({ plan, watch, control, folder, group, pipes }, child);
}

function spawnInit(plan: GuestPlan, runtime: GuestRuntime, [stdout, stderr]: [OutputPipe, OutputPipe]): ChildProcess {
  const init = ["setpriv", "--no-new-privs", "--", runtime.node, "--max-old-space-size=64", runtime.init, plan.run];
  const [file = "", ...args] = withResourceLimits(processLimits(plan), init);
  return spawn(file, args, {
    cwd: "/",
    env: { PATH: HOST_PATH, [MARK]: plan.name },
    ...(plan.uid === null ? {} : { uid: plan.uid, gid: plan.uid }),
    detached: true,
    stdio: ["ignore", "ignore", "ignore", "ignore", "ignore", "ignore", "ignore", stdout.writeFd, stderr.writeFd],
  });
}

class UnisolatedGuest extends SupervisedGuest {
  override readonly ended: Promise<GuestEnd>;
  readonly #init: ChildProcess;

  constructor(parts: GuestParts, init: ChildProcess) {
    super(parts);
    this.#init = init;
    this.ended = this.#whenEnded();
  }

  override kill(): void {
    // Init first: without it nothing new is started on the guest's behalf.
    this.#init.kill("SIGKILL");
    this.killGroup();
    for (const pid of this.#processes()) killPid(pid);
  }

  override usage(): GuestUsage {
    const pids = this.#processes();
    return {
      cpuMs: this.parts.group?.cpuMs() ?? sum(pids.map(processorMs)),
      memoryBytes: this.parts.group?.memoryBytes() ?? sum(pids.map(proportionalMemoryBytes)),
    };
  }

  async #whenEnded(): Promise<GuestEnd> {
    const failure = await new Promise<string>((resolve) => {
      this.#init.once("exit", () => resolve("init ended before the command started"));
      this.#init.once("error", (error) => resolve(error.message));
    });
    for (let left = this.#processes(); left.length > 0; left = this.#processes()) {
      for (const pid of left) killPid(pid);
      await sleep(5);
    }
    return this.conclude(() => ({ kind: "internal", message: failure }));
  }

  #processes(): number[] {
    const grouped = this.parts.group?.pids() ?? [];
    const marked = allPids().filter((pid) => isMarked(pid, this.parts.plan.name));
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
