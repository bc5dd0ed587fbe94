import type { LimitGroup } from "../isolation/cgroups.ts";
import type { OutputPipe } from "../isolation/fifo.ts";
import { type ResourceLimits } from "../isolation/rlimits.ts";
import type { SocketFolder } from "../isolation/socket-folder.ts";
import type { CommandWatch } from "./command-watch.ts";
import type { GuestControl } from "./control.ts";
import {
  type Guest,
  type GuestEnd,
  type GuestPlan,
  type GuestUsage,
  INIT_OVERHEAD,
  type StartFailure,
} from "./guest.ts";

/** How often what is left of a dying guest is killed anew, in milliseconds: it may have forked meanwhile. */
const KILL_AGAIN_MS = 20;

/** What init and bubblewrap are found by. */
export const HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What a guest is made of, however it is isolated. */
export interface GuestParts {
  plan: GuestPlan;
  watch: CommandWatch;
  control: GuestControl;
  folder: SocketFolder;
  group: LimitGroup | null;
  pipes: [stdout: OutputPipe, stderr: OutputPipe];
}

/** The limits of a guest's control group, with what init needs itself. */
export function groupLimits({ limits }: GuestPlan) {
  return {
    memoryBytes: limits.memoryBytes + INIT_OVERHEAD.memoryBytes,
    cpuMillis: limits.cpuMillis,
    processes: limits.processes + INIT_OVERHEAD.processes,
  };
}

/** The limits of each of its processes. Processes are counted by user, so only where the guest has one of its own. */
export function processLimits({ limits, uid }: GuestPlan): ResourceLimits {
  return {
    openFiles: limits.openFiles,
    fileBytes: limits.diskBytes,
    processes: uid === null ? null : limits.processes + INIT_OVERHEAD.processes,
  };
}

/** A guest whose command init supervises: what does not depend on how it is isolated. */
export abstract class SupervisedGuest implements Guest {
  readonly stdout: OutputPipe["reader"];
  readonly stderr: OutputPipe["reader"];
  abstract readonly ended: Promise<GuestEnd>;
  protected readonly parts: GuestParts;
  #killing = false;
  #over = false;

  protected constructor(parts: GuestParts) {
    this.parts = parts;
    [this.stdout, this.stderr] = [parts.pipes[0].reader, parts.pipes[1].reader];
    // What the command leaves behind ends with it.
    parts.watch.onExit(() => this.kill());
    parts.watch.onTimeout(() => this.kill());
  }

  abstract kill(): void;
  abstract usage(): GuestUsage;

  get started(): Promise<StartFailure | null> {
    return this.parts.watch.started;
  }

  get commandOver(): boolean {
    return this.parts.watch.commandOver;
  }

  terminate(): void {
    this.parts.control.tell({ op: "signal", signal: "SIGTERM" });
  }

  /**
   * Kills what is in the control group until the guest is over, and lets it die before others run: a thousand processes
   * take their time to go, and would take it out of the guest's small share.
   */
  protected killGroup(): void {
    if (this.#killing) return;
    this.#killing = true;
    const pass = () => {
      if (this.#over) return;
      this.parts.group?.kill();
      this.parts.group?.weigh("first");
      setTimeout(pass, KILL_AGAIN_MS);
    };
    if (this.parts.group) pass();
  }

  /**
   * No process is left: lets go of everything and says how it was.
   * @param explain why the command never started, if nobody said why; told whether the control group could not be removed
   */
  protected async conclude(explain: (groupIsBusy: boolean) => StartFailure): Promise<GuestEnd> {
    this.#over = true;
    const { control, folder, group, watch } = this.parts;
    await control.heardOut();
    control.close();
    folder.close();
    const oomKills = group?.outOfMemoryKills() ?? 0;
    const removed = (await group?.remove()) ?? true;
    watch.over(explain(!removed));
    return watch.end(oomKills > 0);
  }
}
