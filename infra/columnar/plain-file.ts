import { lstat } from "node:fs/promises";
import path from "node:path";
import { SPILL_FOLDER } from "./messages.ts";
import { ColumnarFailure } from "./task.ts";

/** Throws unless a task may use that name in its folder. */
export function requireFileName(file: string): void {
  if (file !== path.basename(file) || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(file) || file === SPILL_FOLDER)
    throw new RangeError("a columnar task names plain files of its folder");
}

/**
 * Fails unless a child left a file of its own there. One that a table has taken over may leave a link to what only this
 * process can read, or a pipe that nobody writes to.
 */
export async function requirePlainFile(file: string): Promise<void> {
  const found = await lstat(file).catch(() => null); // it said that it wrote one, and there is none
  if (!found?.isFile() || found.nlink !== 1) throw new ColumnarFailure({ reason: "crashed" });
}
