import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { BWRAP_FD, bubblewrapOptions, encodeOptions, GUEST_PATHS } from "../isolation/bubblewrap.ts";
import { closeWriteEnds } from "../isolation/fifo.ts";
import { spawnOwned } from "../isolation/owned-process.ts";
import { identifyProcess, killProcess, type ProcessIdentity } from "../isolation/processes.ts";
import { withResourceLimits } from "../isolation/rlimits.ts";
import { SocketFolder } from "../isolation/socket-folder.ts";
import { CommandWatch } from "./command-watch.ts";
import { GuestControl } from "./control.ts";
import type { Guest, GuestEnd, GuestPlan, GuestRuntime, GuestUsage } from "./guest.ts";
import { namespaceUsage } from "./namespace-usage.ts";
import { type GuestParts, groupLimits, HOST_PATH, processLimits, SupervisedGuest } from "./supervised-guest.ts";

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
  const status = await runtime.pipes.takeUnbreakable();
  const group = runtime.groups?.create(plan.name, groupLimits(plan)) ?? null;
  const seccomp = runtime.seccompFile === null ? null : openSync(runtime.seccompFile, "r");
  const monitor = spawnBubblewrap(plan, runtime, {
    seccomp,
    status: status.writeFd,
    ...{ stdout: stdout.writeFd, stderr: stderr.writeFd },
  });
  closeWriteEnds([stdout, stderr, status]);
  if (seccomp !== null) closeSync(seccomp);
  const guest = new BubblewrapGuest({ plan, watch, control, folder, group, pipes: [stdout, stderr] }, monitor);
  void guest.admit(status.reader, announce);
  return guest;
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
  fds: { seccomp: number | null; status: number; stdout: number; stderr: number },
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
  const [file = "", ...args] = withResourceLimits(processLimits(plan), [
    runtime.bubblewrap,
    "--args",
    String(BWRAP_FD.options),
    "--",
    ...inside,
  ]);
  const child = spawnOwned(file, args, {
    cwd: "/",
    env: { PATH: HOST_PATH, UV_THREADPOOL_SIZE: "1" },
    ...(plan.uid === null ? {} : { uid: plan.uid, gid: plan.uid }),
    stdio: ["ignore", "ignore", "pipe", "pipe", fds.status, "pipe", fds.seccomp ?? "ignore", fds.stdout, fds.stderr],
  });
  const optionsPipe = child.stdio[BWRAP_FD.options] as Writable;
  // EPIPE when bubblewrap is missing or ends early; its exit tells why.
  optionsPipe.on("error", () => {});
  optionsPipe.end(encodeOptions(options));
  return child;
}

class BubblewrapGuest extends SupervisedGuest {
  override readonly ended: Promise<GuestEnd>;
  readonly #monitor: ChildProcess;
  #init: ProcessIdentity | null = null;
  #killed = false;
  #gone = false;
  #diagnostics = "";

  constructor(parts: GuestParts, monitor: ChildProcess) {
    super(parts);
    this.#monitor = monitor;
    monitor.stderr?.setEncoding("utf8").on("data", (text: string) => {
      if (this.#diagnostics.length < 4096) this.#diagnostics += text;
    });
    // Until its command begins, it is our own code that runs: that does not queue behind what others' commands do.
    const { group, watch } = parts;
    group?.weigh("first");
    watch.onBegin(() => group?.weigh("as limited"));
    this.ended = this.#whenEnded();
  }

  override kill(): void {
    this.#killed = true;
    // Before the first process of the namespace is known there is nothing to end; `admit` does it then.
    if (this.#gone || !this.#init) return;
    // It takes all others along, and bubblewrap reaps it: its exit is the proof. But it has to get its turn for that,
    // among as many others as the guest has processes; so all of them are told.
    killProcess(this.#init);
    this.killGroup();
  }

  override usage(): GuestUsage {
    const measured = this.#init && !this.#gone ? namespaceUsage(this.parts.group, this.#init.pid) : null;
    return measured ?? { cpuMs: 0, memoryBytes: 0 };
  }

  /** Waits for the first process, puts it under its limits and lets it go on. */
  async admit(status: Readable, announce: Announce): Promise<void> {
    const streams: readonly unknown[] = this.#monitor.stdio;
    const block = streams[BWRAP_FD.block] as Writable;
    block.on("error", () => {});
    const pid = await childPidFrom(status);
    this.#init = pid === null ? null : identifyProcess(pid);
    if (!this.#init) return void this.#monitor.kill("SIGKILL"); // it ended already; `ended` tells why
    try {
      announce(this.#init);
      this.parts.group?.place(this.#init.pid);
    } catch (error) {
      const message = `limits can't be put on the guest: ${(error as Error).message}`;
      this.parts.watch.fail({ kind: "isolation", message });
      return this.kill();
    }
    if (this.#killed) return this.kill();
    block.end("\n");
  }

  async #whenEnded(): Promise<GuestEnd> {
    await new Promise<void>((resolve) => {
      this.#monitor.once("exit", () => resolve());
      this.#monitor.once("error", (error) => {
        this.#diagnostics += error.message;
        resolve();
      });
    });
    this.#gone = true;
    return this.conclude((groupIsBusy) => {
      const busy = groupIsBusy ? `control group of ${this.parts.plan.name} is still busy` : "";
      const said = `${this.#diagnostics}${busy}`.trim().slice(0, 500);
      return {
        kind: "isolation",
        message: `the guest ended before its command started${said && `: ${said}`}`,
      };
    });
  }
}

/**
 * The pid of the namespace's first process, from the status stream; null when there never was one. What comes after it
 * is not heard: by then a guest may run, and nothing that it could write is to be kept.
 */
function childPidFrom(status: Readable): Promise<number | null> {
  return new Promise((resolve) => {
    let text = "";
    status.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      const match = /"child-pid"\s*:\s*(\d+)/.exec(text);
      if (!match) return;
      resolve(Number(match[1]));
      status.destroy();
    });
    status.once("close", () => resolve(null)).once("error", () => resolve(null));
  });
}
