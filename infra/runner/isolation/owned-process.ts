import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { endProcessesWith } from "./orphans.ts";
import { encodeOwnerMark, newOwnerMark, OWNER_MARK, type OwnerMark } from "./owner-mark.ts";

/** The environment is said in full: nothing of this process's own reaches the child. */
export type OwnedSpawnOptions = SpawnOptions & { readonly env: Readonly<Record<string, string>> };

/**
 * Starts a process that must not outlive this one, nor leave anything behind. Bubblewrap sees to both once it runs. In
 * its first milliseconds it does not: ended by a signal then, by whoever it is, it leaves a child that waits for it for
 * ever and keeps every descriptor that it was given, so that `close` never comes. Such a child bears the mark of its
 * parent. This process ends it when it hears of the parent's end, and says by the parent's `error` when it can't. If it
 * dies before that, others do it (see `endOrphans`).
 */
export function spawnOwned(
  file: string,
  args: readonly string[],
  options: OwnedSpawnOptions,
  mark: OwnerMark = newOwnerMark(),
): ChildProcess {
  const child = spawn(file, args, { ...options, env: { ...options.env, [OWNER_MARK]: encodeOwnerMark(mark) } });
  child.once("exit", (_code, signal) => {
    if (signal !== null) endProcessesWith(mark).catch((error) => child.emit("error", error));
  });
  return child;
}
