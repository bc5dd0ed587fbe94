import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";

/** The Node that the lock file pins, whatever the machine's own is. */
export function pinnedNode(root) {
  const node = path.join(root, "node_modules", `node-linux-${process.arch}`, "bin", "node");
  if (!existsSync(node)) throw new Error(`the pinned Node is not installed: ${node} is missing`);
  return node;
}

/**
 * Runs a program in this one's place: same terminal, signals passed on, its exit code returned. It stays in this
 * process group, so whoever ends the group ends both.
 */
export function handOver(program, args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: "inherit", ...options });
    const passOn = (signal) => child.kill(signal);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(signal, passOn);
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? 128 + (constants.signals[signal] ?? 0)));
  });
}
