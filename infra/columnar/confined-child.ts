import type { ChildProcess } from "node:child_process";
import { lchown } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import type { Writable } from "node:stream";
import { encodeOptions, systemFolders } from "../runner/isolation/bubblewrap.ts";
import { spawnOwned } from "../runner/isolation/owned-process.ts";
import { OWNER_MARK } from "../runner/isolation/owner-mark.ts";
import { withResourceLimits } from "../runner/isolation/rlimits.ts";
import { seccompProgram } from "../runner/isolation/seccomp.ts";
import { projectFile } from "../telemetry/project-root.ts";

/** How a child is confined by bubblewrap. */
export interface Confined {
  readonly level: "bubblewrap";
  /** Whether it has a user of its own on this machine, which takes a process of root's. */
  readonly ownUser: boolean;
  /** Whether system calls are filtered, as those of guests are. */
  readonly seccomp: boolean;
}

export interface ConfinedStart {
  readonly confined: Confined;
  /** The one folder of the machine that the child can change; it sees it as `INSIDE.folder`. */
  readonly folder: string;
  readonly memoryLimitBytes: number;
  /** What the runtime is started with; paths as the child sees them. */
  readonly nodeArguments: readonly string[];
}

/** Where things are for a confined child. */
export const INSIDE = { folder: "/task", code: "/nodus/infra/columnar" } as const;

const FD = { seccomp: 4, options: 5 } as const;
const NODE = "/nodus/node";
const BUBBLEWRAP = "bwrap";
/** Users that no account and no guest has. */
const FIRST_UID = 199_000;
const UIDS = 1_000;
/** Address space that the runtime reserves beside what it uses: its code range and its threads' stacks. */
const RESERVED_BYTES = 768 * 1024 * 1024;
/** No table, spilled or written, is that large; a file that unpacks to more is meant to. */
const FILE_BYTES = 64 * 1024 ** 3;
const OPEN_FILES = 256;
const THREADS = 64;

let started = process.pid;

/**
 * Starts Node with a channel where there is no network, no other process, no other file than the runtime's, and no
 * capability. The child ends with this process. With a user of its own, the folder and the `files` in it become that
 * user's.
 */
export async function startConfined(start: ConfinedStart, files: readonly string[]): Promise<ChildProcess> {
  const uid = start.confined.ownUser ? FIRST_UID + (started++ % UIDS) : null;
  // Links are not followed: a child before this one may have made them.
  if (uid !== null) for (const name of ["", ...files]) await lchown(path.join(start.folder, name), uid, uid);
  const limits = { openFiles: OPEN_FILES, fileBytes: FILE_BYTES, processes: uid === null ? null : THREADS };
  const dataBytes = start.memoryLimitBytes + RESERVED_BYTES;
  const [file = "", ...args] = withResourceLimits({ ...limits, dataBytes }, [
    ...[BUBBLEWRAP, "--args", String(FD.options), "--"],
    ...(uid === null ? [] : asUser(uid)),
    ...[NODE, ...start.nodeArguments],
  ]);
  const child = spawnOwned(file, args, {
    cwd: "/",
    // What the engine writes there may quote the table.
    stdio: ["ignore", "ignore", "ignore", "ipc", "pipe", "pipe"],
    env: { TZ: "UTC", PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
    serialization: "json",
  });
  give(child, FD.seccomp, start.confined.seccomp ? seccompProgram(process.arch)! : "");
  give(child, FD.options, encodeOptions(optionsOf(start)));
  return child;
}

function give(child: ChildProcess, descriptor: number, content: Buffer | string): void {
  const pipe = (child.stdio as readonly unknown[])[descriptor] as Writable | undefined;
  pipe?.on("error", () => {}); // EPIPE: it ended before it read this, and its end says so
  pipe?.end(content);
}

/** Only root's bubblewrap may leave a command the right to become another user, who then has no right at all. */
function asUser(uid: number): string[] {
  const user = ["--reuid", String(uid), "--regid", String(uid), "--clear-groups"];
  return ["setpriv", ...user, "--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all"];
}

function optionsOf({ confined, folder }: ConfinedStart): string[] {
  const modules = path.dirname(path.dirname(createRequire(import.meta.url).resolve("@duckdb/node-api/package.json")));
  return [
    // Folders are made here, open to every user, where a mount would make them its own.
    ...["--size", String(1024 * 1024), "--tmpfs", "/", "--dir", "/etc", "--dir", "/nodus", "--dir", "/nodus/infra"],
    ...["--dir", "/nodus/node_modules", "--ro-bind", "/usr", "/usr", ...systemFolders()],
    ...["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc", "--dev", "/dev"],
    ...["--ro-bind", process.execPath, NODE, "--ro-bind", projectFile("package.json"), "/nodus/package.json"],
    ...["--ro-bind", import.meta.dirname, INSIDE.code, "--ro-bind", modules, "/nodus/node_modules/@duckdb"],
    ...[
      "--bind",
      folder,
      INSIDE.folder,
      "--remount-ro",
      "/proc",
      "--remount-ro",
      "/dev",
      "--remount-ro",
      "/",
      "--chdir",
      "/",
    ],
    ...["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"],
    ...["--hostname", "nodus", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--unsetenv", OWNER_MARK],
    ...(confined.ownUser
      ? ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
      : ["--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"]),
    ...(confined.seccomp ? ["--seccomp", String(FD.seccomp)] : []),
  ];
}
