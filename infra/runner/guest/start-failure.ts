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
  ERR_INVALID_ARG_VALUE: "not_executable",
};

/** An order without a command. Images are not pulled, so what one would run by itself is not known. */
export const NO_COMMAND: StartFailure = {
  kind: "not_found",
  message: "The order names no command, and the image's own is not used.",
};

/** Tells a missing program from one that may not be executed. */
export function startFailureOf(errno: string, program: string): StartFailure {
  if (program === "") return NO_COMMAND;
  const kind = KINDS[errno] ?? "internal";
  return { kind, message: sentence(kind, program, errno) };
}

function sentence(kind: StartFailure["kind"], program: string, errno: string): string {
  if (errno === "E2BIG") return `${program}: its arguments and environment are too long (${errno})`;
  if (errno === "ERR_INVALID_ARG_VALUE") return `${program}: an argument or a variable holds a NUL character`;
  if (kind === "not_executable") return `${program}: can't be executed (${errno})`;
  if (kind !== "not_found") return `${program}: could not be started (${errno})`;
  const hint = program.includes(" ") ? "; a command is a list, in which each argument stands by itself" : "";
  return `${program}: no such program, or its interpreter is missing (${errno})${hint}`;
}
