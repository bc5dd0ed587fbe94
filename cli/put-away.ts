import { note } from "./progress.ts";

/**
 * Closes what a command stood on, one after another. What cannot be closed is told and passed: the command has done what
 * it did, and neither its success nor its own error is hidden by that.
 */
export async function putAway(parts: readonly (() => void | Promise<void>)[], tell = note): Promise<void> {
  for (const close of parts)
    try {
      await close();
    } catch (error) {
      tell(`Not everything could be closed (${(error as Error).message}). That changes nothing about what was done.`);
    }
}
