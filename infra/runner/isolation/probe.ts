import { closeSync, openSync } from "node:fs";
import type { Writable } from "node:stream";
import { type BubblewrapPlan, BWRAP_FD, bubblewrapOptions, encodeOptions, GUEST_PATHS } from "./bubblewrap.ts";
import { spawnOwned } from "./owned-process.ts";

export interface ProbePlan {
  /** Program name or path. */
  bubblewrap: string;
  plan: Omit<BubblewrapPlan, "seccomp" | "block">;
  seccompFile: string | null;
  /** Host uid that guests will have; null for this process's own. */
  uid: number | null;
}

export type ProbeResult = { works: true; seccomp: boolean } | { works: false; reason: string };

const TIMEOUT_MS = 15_000;

/**
 * Starts a guest that does nothing, exactly as real ones are started: what works is found out, not inferred from a
 * version or a kernel setting. Tries without the filter only when it fails with it.
 */
export async function probeBubblewrap(probe: ProbePlan): Promise<ProbeResult> {
  const reason =
    probe.seccompFile === null ? "no system call filter for this processor" : await attempt(probe, probe.seccompFile);
  if (reason === null) return { works: true, seccomp: true };
  const without = await attempt(probe, null);
  return without === null ? { works: true, seccomp: false } : { works: false, reason: without };
}

/** Null when the guest ran and ended well, else why not. */
function attempt(probe: ProbePlan, seccompFile: string | null): Promise<string | null> {
  const seccomp = seccompFile === null ? null : openSync(seccompFile, "r");
  const child = spawnOwned(
    probe.bubblewrap,
    ["--args", String(BWRAP_FD.options), "--", GUEST_PATHS.node, "--version"],
    {
      cwd: "/",
      env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
      ...(probe.uid === null ? {} : { uid: probe.uid, gid: probe.uid }),
      stdio: ["ignore", "ignore", "pipe", "pipe", "ignore", "ignore", seccomp ?? "ignore"],
      timeout: TIMEOUT_MS,
      killSignal: "SIGKILL",
    },
  );
  if (seccomp !== null) closeSync(seccomp);
  const options = child.stdio[BWRAP_FD.options] as Writable;
  options.on("error", () => {}); // bubblewrap ended before it read them; its exit says why
  options.end(encodeOptions(bubblewrapOptions({ ...probe.plan, seccomp: seccomp !== null, block: false })));
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  return new Promise((resolve) => {
    child.once("error", (error: NodeJS.ErrnoException) =>
      resolve(
        error.code === "ENOENT" ? "bubblewrap is not installed" : `bubblewrap can't be started: ${error.message}`,
      ),
    );
    child.once("close", (code, signal) =>
      resolve(
        code === 0 ? null : `a trial guest failed (${signal ?? code}): ${said.trim().slice(0, 300) || "no message"}`,
      ),
    );
  });
}
