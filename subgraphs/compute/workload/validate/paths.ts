import { LIMITS } from "../../../../infra/kernel/limits.ts";
import { hasControl, utf8Bytes } from "./text.ts";

/** Why a path is refused; null for a path that is relative, stays below its start and reads the same everywhere. */
export function pathFault(path: string): string | null {
  if (path === "") return "is empty";
  if (!path.isWellFormed()) return "is not valid Unicode";
  if (utf8Bytes(path) > LIMITS.checkpointPathBytes) return `is longer than ${LIMITS.checkpointPathBytes} bytes`;
  if (hasControl(path)) return "holds a control character";
  if (path.includes("\\")) return "holds a backslash";
  if (path.includes(":")) return "holds a colon";
  if (path.startsWith("/")) return "is absolute";
  const parts = path.split("/");
  if (parts.includes("")) return "has an empty part";
  if (parts.includes(".") || parts.includes("..")) return "has a part . or ..";
  return null;
}

/** As `pathFault`, for what a checkpoint saves: the whole folder may be named, the runner's own part may not. */
export function checkpointPathFault(path: string): string | null {
  if (path === ".") return null;
  return pathFault(path) ?? (path.split("/")[0] === ".nodus" ? "lies in .nodus, which is the runner's own" : null);
}
