import { type ChildProcess, execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HOST_PATH } from "../guest/supervised-guest.ts";
import { spawnOwned } from "../isolation/owned-process.ts";
import { ownerMarkOf } from "../isolation/owner-mark.ts";
import { allPids, identifyProcess, type ProcessIdentity } from "../isolation/processes.ts";

const OPTIONS = ["--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "--json-status-fd", "3"];

/**
 * Starts bubblewrap so that it dies with its child waiting for it: nobody reads its status, and it writes the first line
 * of that before it lets the child go on. Returns once the child is there, and in one go, so that this process has not
 * heard of any end yet.
 */
export function startDyingBubblewrap(): { bubblewrap: ChildProcess; child: ProcessIdentity } {
  const status = brokenPipe();
  const bubblewrap = spawnOwned("bwrap", [...OPTIONS, "--", "sleep", "100"], {
    env: { PATH: HOST_PATH },
    stdio: ["ignore", "ignore", "pipe", status],
  });
  closeSync(status);
  if (bubblewrap.pid === undefined) throw new Error("this test needs bubblewrap (apt-get install bubblewrap)");
  const isItsChild = (pid: number) => pid !== bubblewrap.pid && ownerMarkOf(pid)?.owner.pid === process.pid;
  for (;;) {
    const pid = allPids().find(isItsChild);
    const child = pid === undefined ? null : identifyProcess(pid);
    if (child) return { bubblewrap, child };
  }
}

/** What a pipe is to its writer when all readers have gone. */
function brokenPipe(): number {
  const folder = mkdtempSync(join(tmpdir(), "nodus-broken-"));
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  const reader = openSync(pipe, constants.O_RDWR);
  const writer = openSync(pipe, constants.O_WRONLY);
  closeSync(reader);
  rmSync(folder, { recursive: true });
  return writer;
}
