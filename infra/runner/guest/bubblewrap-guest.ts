import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { BWRAP_FD, bubblewrapOptions, encodeOptions, GUEST_PATHS } from "../isolation/bubblewrap.ts";
import type { LimitGroup } from "../isolation/cgroups.ts";
import { closeWriteEnds, type OutputPipe } from "../isolation/fifo.ts";
import { identifyProcess, killProcess, type ProcessIdentity } from "../isolation/processes.ts";
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
import { namespaceUsage } from "./namespace-usage.ts";

/** Said in the order's folder, so that a later life of the host agent can end exactly this process. */
export type Announce = (namespaceInit: ProcessIdentity) => void;

/** Starts a command in namespaces of its own. Throws when the host can't even try. */
export async function startBubblewrapGuest(plan: GuestPlan, runtime: GuestRuntime, announce: Announce): Promise<Guest> {
  const watch = new CommandWatch(plan.command[0] ?? "");
  const folder = new SocketFolder(plan.run);
  const control: GuestControl = await GuestControl.listen(
    folder,
    (message) => watch.hear(message),
    () => control.tell(startMessage(plan)),
  );
  const [stdout, stderr] = [await runtime.pipes.take(), await runtime.pipes.take()];
  const group = runtime.groups?.create(plan.name, groupLimits(plan)) ?? null;
  const seccomp = runtime.seccompFile === null ? null : openSync(runtime.seccompFile, "r");
  const monitor = spawnBubblewrap(plan, runtime, { seccomp, stdout: stdout.writeFd, stderr: stderr.writeFd });
  closeWriteEnds([stdout, stderr]);
  if (seccomp !== null) closeSync(seccomp);
  const guest = new BubblewrapGuest(plan, watch, control, folder, monitor, group, [stdout, stderr]);
  void guest.admit(announce);
  return guest;
}

function groupLimits(plan: GuestPlan) {
  return {
    memoryBytes: plan.limits.memoryBytes + INIT_OVERHEAD.memoryBytes,
    cpuMillis: plan.limits.cpuMillis,
    processes: plan.limits.processes + INIT_OVERHEAD.processes,
  };
}

function startMessage(plan: GuestPlan) {
  return {
    op: "start",
    command: plan.command,
    workingDirectory: plan.workingDirectory,
    env: plan.env,
    stdoutFd: BWRAP_FD.stdout,
    stderrFd: BWRAP_FD.stderr,
    proxy: true,
    reach: "namespace",
  } as const;
}

function spawnBubblewrap(
  plan: GuestPlan,
  runtime: GuestRuntime,
  fds: { seccomp: number | null; stdout: number; stderr: number },
): ChildProcess {
  const options = bubblewrapOptions({
    workspace: plan.workspace,
    run: plan.run,
    etc: runtime.etc,
    node: runtime.node,
    init: runtime.init,
    tmpBytes: plan.limits.tmpBytes,
    readOnly: runtime.readOnly,
    devices: plan.devices,
    seccomp: fds.seccomp !== null,
    block: true,
  });
  const inside = [GUEST_PATHS.node, "--max-old-space-size=64", "--v8-pool-size=1", GUEST_PATHS.init, GUEST_PATHS.run];
  const limits = {
    openFiles: plan.limits.openFiles,
    fileBytes: plan.limits.diskBytes,
    processes: plan.uid === null ? null : plan.limits.processes + INIT_OVERHEAD.processes,
  };
  const [file = "", ...args] = withResourceLimits(limits, [
    runtime.bubblewrap,
    "--args",
    String(BWRAP_FD.options),
    "--",
    ...inside,
  ]);
  const child = spawn(file, args, {
    cwd: "/",
    env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", UV_THREADPOOL_SIZE: "1" },
    ...(plan.uid === null ? {} : { uid: plan.uid, gid: plan.uid }),
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe", "pipe", fds.seccomp ?? "ignore", fds.stdout, fds.stderr],
  });
  const optionsPipe = child.stdio[BWRAP_FD.options] as Writable;
  // EPIPE when bubblewrap is missing or ends early; its exit tells why.
  optionsPipe.on("error", () => {});
  optionsPipe.end(encodeOptions(options));
  return child;
}

class BubblewrapGuest implements Guest {
  readonly stdout: OutputPipe["reader"];
  readonly stderr: OutputPipe["reader"];
  readonly ended: Promise<GuestEnd>;
  readonly #watch: CommandWatch;
  readonly #control: GuestControl;
  readonly #monitor: ChildProcess;
  readonly #group: LimitGroup | null;
  #init: ProcessIdentity | null = null;
  #killed = false;
  #gone = false;
  #diagnostics = "";

  constructor(
    plan: GuestPlan,
    watch: CommandWatch,
    control: GuestControl,
    folder: SocketFolder,
    monitor: ChildProcess,
    group: LimitGroup | null,
    [stdout, stderr]: [OutputPipe, OutputPipe],
  ) {
    this.stdout = stdout.reader;
    this.stderr = stderr.reader;
    this.#watch = watch;
    this.#control = control;
    this.#monitor = monitor;
    this.#group = group;
    monitor.stderr?.setEncoding("utf8").on("data", (text: string) => {
      if (this.#diagnostics.length < 4096) this.#diagnostics += text;
    });
    // Until its command begins, it is our own code that runs: that does not queue behind what others' commands do.
    group?.weigh("first");
    watch.onBegin(() => group?.weigh("as limited"));
    // What the command leaves behind ends with it.
    watch.onExit(() => this.kill());
    watch.onTimeout(() => this.kill());
    this.ended = this.#whenEnded(plan, folder);
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
    this.#killed = true;
    // The first process of the namespace takes all others along, and bubblewrap reaps it: its exit is the proof.
    // Before that process is known there is nothing to end; `admit` does it then.
    if (!this.#gone && this.#init) killProcess(this.#init);
  }

  usage(): GuestUsage {
    const measured = this.#init && !this.#gone ? namespaceUsage(this.#group, this.#init.pid) : null;
    return measured ?? { cpuMs: 0, memoryBytes: 0 };
  }

  /** Waits for the first process, puts it under its limits and lets it go on. */
  async admit(announce: Announce): Promise<void> {
    const streams: readonly unknown[] = this.#monitor.stdio;
    const status = streams[BWRAP_FD.status] as Readable;
    const block = streams[BWRAP_FD.block] as Writable;
    block.on("error", () => {});
    const pid = await childPidFrom(status);
    this.#init = pid === null ? null : identifyProcess(pid);
    if (!this.#init) return void this.#monitor.kill("SIGKILL"); // it ended already; `ended` tells why
    try {
      announce(this.#init);
      this.#group?.place(this.#init.pid);
    } catch (error) {
      this.#watch.fail({ kind: "isolation", message: `limits can't be put on the guest: ${(error as Error).message}` });
      return this.kill();
    }
    if (this.#killed) return this.kill();
    block.end("\n");
  }

  async #whenEnded(plan: GuestPlan, folder: SocketFolder): Promise<GuestEnd> {
    await new Promise<void>((resolve) => {
      this.#monitor.once("exit", () => resolve());
      this.#monitor.once("error", (error) => {
        this.#diagnostics += error.message;
        resolve();
      });
    });
    this.#gone = true;
    this.#control.close();
    folder.close();
    const oomKills = this.#group?.outOfMemoryKills() ?? 0;
    if (this.#group && !(await this.#group.remove()))
      this.#diagnostics += `control group of ${plan.name} is still busy`;
    const said = this.#diagnostics.trim().slice(0, 500);
    this.#watch.over({
      kind: "isolation",
      message: `the guest ended before its command started${said && `: ${said}`}`,
    });
    return this.#watch.end(oomKills > 0);
  }
}

/** The pid of the namespace's first process from the status stream; null when there never was one. */
function childPidFrom(status: Readable): Promise<number | null> {
  return new Promise((resolve) => {
    let text = "";
    status.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      const match = /"child-pid"\s*:\s*(\d+)/.exec(text);
      if (match) resolve(Number(match[1]));
    });
    status.once("close", () => resolve(null)).once("error", () => resolve(null));
  });
}
