import { lstatSync, readlinkSync } from "node:fs";

/** Descriptors that the host opens for bubblewrap, by number in the child. */
export const BWRAP_FD = { options: 3, status: 4, block: 5, seccomp: 6, stdout: 7, stderr: 8 } as const;

/** Where things are inside a guest. */
export const GUEST_PATHS = {
  workspace: "/workspace",
  run: "/run/nodus",
  node: "/nodus/node",
  init: "/nodus/init.mjs",
} as const;

export interface BubblewrapPlan {
  /** Host directory that becomes `/workspace`, writable. */
  workspace: string;
  /** Host directory with the guest's sockets; the guest can't change it. */
  run: string;
  /** Host directory with `passwd`, `group`, `hosts`, `nsswitch.conf` and an empty `resolv.conf`. */
  etc: string;
  node: string;
  init: string;
  /** Size of `/tmp` and, separately, of `/dev/shm`. */
  tmpBytes: number;
  /** Further host paths, such as a driver library folder, readable at the same place. */
  readOnly: string[];
  /** Device files of an accelerator. */
  devices: string[];
  seccomp: boolean;
  /** Only a probe does without: it waits for nobody. */
  block: boolean;
}

const SYSTEM_FOLDERS = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
const SYSTEM_FILES = [
  "/etc/ssl",
  "/etc/ca-certificates",
  "/etc/pki",
  "/etc/alternatives",
  "/etc/ld.so.cache",
  "/etc/localtime",
];
const PRIVATE_FILES = ["passwd", "group", "hosts", "nsswitch.conf", "resolv.conf"];

/**
 * Options of one guest. They go through a descriptor and not on the command line, which the guest can read in
 * /proc/1/cmdline. The root is built from nothing: binding the host's would show its home folders.
 */
export function bubblewrapOptions(plan: BubblewrapPlan): string[] {
  return [
    ...["--size", String(16 * 1024 * 1024), "--tmpfs", "/", "--ro-bind", "/usr", "/usr"],
    ...systemFolders(),
    ...SYSTEM_FILES.flatMap((path) => ["--ro-bind-try", path, path]),
    ...PRIVATE_FILES.flatMap((name) => ["--ro-bind", `${plan.etc}/${name}`, `/etc/${name}`]),
    ...["--proc", "/proc", "--dev", "/dev"],
    ...["--perms", "1777", "--size", String(plan.tmpBytes), "--tmpfs", "/dev/shm"],
    ...["--perms", "1777", "--size", String(plan.tmpBytes), "--tmpfs", "/tmp"],
    ...["--dir", "/run", "--dir", "/var", "--symlink", "/tmp", "/var/tmp"],
    ...["--ro-bind", plan.run, GUEST_PATHS.run, "--bind", plan.workspace, GUEST_PATHS.workspace],
    ...["--ro-bind", plan.node, GUEST_PATHS.node, "--ro-bind", plan.init, GUEST_PATHS.init],
    ...plan.readOnly.flatMap((path) => ["--ro-bind-try", path, path]),
    ...plan.devices.flatMap((path) => ["--dev-bind-try", path, path]),
    ...["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", GUEST_PATHS.workspace],
    ...["--unshare-all", "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000", "--hostname", "nodus"],
    ...["--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv"],
    ...(plan.seccomp ? ["--seccomp", String(BWRAP_FD.seccomp)] : []),
    ...(plan.block ? ["--json-status-fd", String(BWRAP_FD.status), "--block-fd", String(BWRAP_FD.block)] : []),
  ];
}

/** Options as bubblewrap reads them from a descriptor. */
export function encodeOptions(options: string[]): string {
  return options.map((option) => `${option}\0`).join("");
}

/** Options for the system's programs and libraries outside /usr. */
export function systemFolders(): string[] {
  return SYSTEM_FOLDERS.flatMap(systemFolder);
}

/** Distributions with one merged /usr have links here, others real folders. */
function systemFolder(path: string): string[] {
  try {
    return lstatSync(path).isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
  } catch {
    return []; // this machine has no such folder
  }
}

/** Contents of a guest's own /etc: it learns nothing of the host's accounts and resolves no names by itself. */
export const GUEST_ETC: Record<(typeof PRIVATE_FILES)[number], string> = {
  passwd:
    "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nnodus:x:1000:1000:nodus:/workspace/home:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
  group: "root:x:0:\nnodus:x:1000:\nnogroup:x:65534:\n",
  hosts: "127.0.0.1 localhost nodus\n::1 localhost\n",
  "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
  "resolv.conf": "",
};
