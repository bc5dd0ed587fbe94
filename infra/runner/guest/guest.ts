import type { Socket } from "node:net";
import type { LimitGroups } from "../isolation/cgroups.ts";
import type { OutputPipes } from "../isolation/fifo.ts";
import type { ExitRecord } from "../protocol.ts";

export type StartFailure = NonNullable<ExitRecord["startFailure"]>;

/** How a guest ended, as far as the guest itself decided it. */
export interface GuestEnd {
  code: number | null;
  signal: string | null;
  /** The kernel killed a process of the guest for memory, and the command did not succeed all the same. */
  oom: boolean;
  startFailure: StartFailure | null;
}

export interface GuestUsage {
  cpuMs: number;
  memoryBytes: number;
}

/** One running command with all that it forks. */
export interface Guest {
  readonly stdout: Socket;
  readonly stderr: Socket;
  /** Resolves once the command was executed, or with the reason why it could not be. Never rejects. */
  readonly started: Promise<StartFailure | null>;
  /** The command itself is over, whatever it left behind. */
  readonly commandOver: boolean;
  /** Resolves when no process of the guest is left. Never rejects. */
  readonly ended: Promise<GuestEnd>;
  /** SIGTERM to every process of the guest. */
  terminate(): void;
  /** Ends every process of the guest; `ended` follows. Harmless when repeated. */
  kill(): void;
  usage(): GuestUsage;
}

export interface GuestPlan {
  /** Unique among the live guests of this host agent; names its control group. */
  name: string;
  /** Writable by the guest, holds the folder `code`. */
  workspace: string;
  /** Holds the guest's sockets; the guest can't write there. */
  run: string;
  /** Own host uid of the guest; null: the host agent's. */
  uid: number | null;
  command: string[];
  workingDirectory: string;
  env: Record<string, string>;
  limits: {
    cpuMillis: number;
    memoryBytes: number;
    diskBytes: number;
    tmpBytes: number;
    processes: number;
    openFiles: number;
  };
  /** Device files of an accelerator. */
  devices: string[];
}

/** What every guest of a host agent shares. */
export interface GuestRuntime {
  /** Program name or path. */
  bubblewrap: string;
  /** Where guests can read and execute them. */
  node: string;
  init: string;
  etc: string;
  /** Compiled filter; null where none could be built. */
  seccompFile: string | null;
  groups: LimitGroups | null;
  pipes: OutputPipes;
  /** Further host paths that guests may read. */
  readOnly: string[];
}

/** What init and bubblewrap need beside the command itself. */
export const INIT_OVERHEAD = { memoryBytes: 48 * 1024 * 1024, processes: 24 } as const;

/** How long a guest may take from spawn to a running command on a crowded machine. */
export const START_TIMEOUT_MS = 60_000;
