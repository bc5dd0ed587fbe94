import net from "node:net";
import { folderDigest } from "../isolation/folder-digest.ts";

/**
 * Makes this process the only host agent of a folder. The lock is an abstract socket: it goes when the process goes,
 * which a file does not. False when another agent holds it.
 */
export function takeLock(folder: string): Promise<boolean> {
  const digest = folderDigest(folder).slice(0, 32);
  const lock = net.createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    lock.once("error", () => resolve(false));
    lock.listen(`\0nodus-host-${digest}`, () => resolve(true));
  });
}
