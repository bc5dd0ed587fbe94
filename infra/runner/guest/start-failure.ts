import type { StartFailure } from "./guest.ts";

const KINDS: Record<string, StartFailure["kind"]> = {
  ENOENT: "not_found",
  ENOTDIR: "not_found",
  EACCES: "not_executable",
  EPERM: "not_executable",
  ENOEXEC: "not_executable",
  EISDIR: "not_executable",
  ELOOP: "not_executable",
  E2BIG: "not_executable",
};

/** Tells a missing program from one that may not be executed. */
export function startFailureOf(errno: string, program: string): StartFailure {
  const kind = KINDS[errno] ?? "internal";
  if (kind === "not_found")
    return { kind, message: `${program}: no such program, or its interpreter is missing (${errno})` };
  if (kind === "not_executable") return { kind, message: `${program}: can't be executed (${errno})` };
  return { kind, message: `${program}: could not be started (${errno})` };
}
