export interface ResourceLimits {
  openFiles: number;
  /** Largest single file; a quick guard before the disk watchdog looks. */
  fileBytes: number;
  /** Null where the uid is shared with others, whose processes would count too. */
  processes: number | null;
  /** Private memory that may be written to, reserved or used; unlimited unless told. */
  dataBytes?: number;
}

/** Wraps a command so that it and all that it forks run under these limits. */
export function withResourceLimits(limits: ResourceLimits, command: string[]): string[] {
  return [
    "prlimit",
    `--nofile=${limits.openFiles}:${limits.openFiles}`,
    `--fsize=${limits.fileBytes}:${limits.fileBytes}`,
    "--core=0:0",
    ...(limits.dataBytes === undefined ? [] : [`--data=${limits.dataBytes}:${limits.dataBytes}`]),
    ...(limits.processes === null ? [] : [`--nproc=${limits.processes}:${limits.processes}`]),
    "--",
    ...command,
  ];
}
