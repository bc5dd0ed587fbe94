import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { BWRAP_FD } from "../isolation/bubblewrap.ts";
import { closeWriteEnds, type OutputPipe } from "../isolation/fifo.ts";
import { type OwnedSpawnOptions, spawnOwned } from "../isolation/owned-process.ts";
import { isSameMark, newOwnerMark, type OwnerMark, ownerMarkOf } from "../isolation/owner-mark.ts";
import { allPids, isZombie, killPid, processorMs, proportionalMemoryBytes } from "../isolation/processes.ts";
import { withResourceLimits } from "../isolation/rlimits.ts";
import { SocketFolder } from "../isolation/socket-folder.ts";
import { CommandWatch } from "./command-watch.ts";
import { GuestControl } from "./control.ts";
import type { Guest, GuestEnd, GuestPlan, GuestRuntime, GuestUsage } from "./guest.ts";
import { sum } from "./namespace-usage.ts";
import { type GuestParts, groupLimits, HOST_PATH, processLimits, SupervisedGuest } from "./supervised-guest.ts";

/**
 * Starts a command with limits but without namespaces, for a machine where an operator accepted that. Its processes are
 * found by control group or by their owner's mark, which the command inherits; one that sheds both escapes.
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
        ...{ command: plan.command, workingDirectory: plan.workingDirectory, env: plan.env },
        ...{ stdoutFd: BWRAP_FD.stdout, stderrFd: BWRAP_FD.stderr, proxy: false, reach: "group" },
      });
    },
  );
  const pipes: [OutputPipe, OutputPipe] = [await runtime.pipes.take(), await runtime.pipes.take()];
  const mark = newOwnerMark();
  const child = spawnInit(plan, runtime, pipes, mark);
  closeWriteEnds(pipes);
  return new UnisolatedGuest({ plan, watch, control, folder, group, pipes }, child, mark);
}

function spawnInit(
  plan: GuestPlan,
  runtime: GuestRuntime,
  [stdout, stderr]: [OutputPipe, OutputPipe],
  mark: OwnerMark,
): ChildProcess {
  const init = ["setpriv", "--no-new-privs", "--", runtime.node, "--max-old-space-size=64", runtime.init, plan.run];
  const [file = "", ...args] = withResourceLimits(processLimits(plan), init);
  const options: OwnedSpawnOptions = {
    cwd: "/",
    env: { PATH: HOST_PATH },
    ...(plan.uid === null ? {} : { uid: plan.uid, gid: plan.uid }),
    detached: true,
    stdio: ["ignore", "ignore", "ignore", "ignore", "ignore", "ignore", "ignore", stdout.writeFd, stderr.writeFd],
  };
  return spawnOwned(file, args, options, mark);
}

class UnisolatedGuest extends SupervisedGuest {
  override readonly ended: Promise<GuestEnd>;
  readonly #init: ChildProcess;
  readonly #mark: OwnerMark;

  constructor(parts: GuestParts, init: ChildProcess, mark: OwnerMark) {
    super(parts);
    this.#init = init;
    this.#mark = mark;
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
    const marked = allPids().filter((pid) => this.#isMarked(pid));
    return [...new Set([...grouped, ...marked])].filter((pid) => !isZombie(pid));
  }

  #isMarked(pid: number): boolean {
    const mark = ownerMarkOf(pid);
    return mark !== null && isSameMark(mark, this.#mark);
  }
}
