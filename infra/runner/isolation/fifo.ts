import { execFile } from "node:child_process";
import { closeSync, constants, openSync, unlinkSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

/** One direction of output from a guest to the host. */
export interface OutputPipe {
  /** Given to the guest at spawn; the host closes its copy right after. */
  writeFd: number;
  reader: Socket;
}

/**
 * Makes real pipes for a guest's output. Node's own `stdio: "pipe"` is a socket pair, on which `echo > /dev/stdout`
 * fails with ENXIO, so named pipes are made, opened at both ends and unlinked at once.
 * @param directory private to the host, so that nobody else can open the name meanwhile
 */
export async function makeOutputPipes(directory: string, names: string[]): Promise<OutputPipe[]> {
  const paths = names.map((name) => join(directory, name));
  // World-writable, because programs open /proc/self/fd/1 anew under the guest's uid.
  await promisify(execFile)("mkfifo", ["-m", "0666", ...paths]);
  return paths.map((path) => {
    const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writeFd = openSync(path, constants.O_WRONLY);
    unlinkSync(path);
    return { writeFd, reader: new Socket({ fd: readFd, readable: true, writable: false }) };
  });
}

export function closeWriteEnds(pipes: OutputPipe[]): void {
  for (const pipe of pipes) closeSync(pipe.writeFd);
}
