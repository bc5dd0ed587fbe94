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
  return { kind, message: sentence(kind, program, errno) };
}

function sentence(kind: StartFailure["kind"], program: string, errno: string): string {
  if (program === "") return "there is no command, and the command of an image that is not pulled is not known";
  if (kind === "not_executable") return `${program}: can't be executed (${errno})`;
  if (kind !== "not_found") return `${program}: could not be started (${errno})`;
  const hint = program.includes(" ") ? "; a command is a list, in which each argument stands by itself" : "";
  return `${program}: no such program, or its interpreter is missing (${errno})${hint}`;
}
