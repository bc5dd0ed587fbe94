import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Bench } from "../bench-place.ts";
import { type BenchRow, comparedLatencies, type Outcome } from "../bench-row.ts";
import { PlatformUser } from "../guest-run.ts";
import { timesOf } from "../measure.ts";

const SCRIPT = "echo first";
const TURNS = 30;

/** From the submit to the first line at a subscriber, on this machine with the isolation that it has. */
async function run(bench: Bench): Promise<Outcome[]> {
  const user = new PlatformUser(await bench.platform());
  try {
    const nodusMs = await timesOf(() => submitToFirstLine(user), TURNS, 3);
    const baselineMs = await timesOf(spawnToFirstLine, TURNS, 3);
    const note = "one at a time; baseline: the same command spawned under bubblewrap, first byte on its pipe";
    const what = "submit → first line at a subscriber";
    return [comparedLatencies({ what, nodusMs, baselineMs, most: { p50Ms: 150, p95Ms: 300 }, note })];
  } finally {
    await user.close();
  }
}

async function submitToFirstLine(user: PlatformUser): Promise<void> {
  const id = await user.submit(SCRIPT);
  for await (const { bytes } of user.output(id)) {
    if (bytes.length > 0) return;
  }
  throw new Error(`the workload ${id} printed nothing`);
}

const FOLDERS = ["/bin", "/sbin", "/lib", "/lib64"];

async function spawnToFirstLine(): Promise<void> {
  const options = [
    ...["--ro-bind", "/usr", "/usr", ...FOLDERS.flatMap((folder) => ["--ro-bind-try", folder, folder])],
    ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-all", "--die-with-parent", "--new-session"],
  ];
  const child = spawn("bwrap", [...options, "sh", "-c", SCRIPT], { stdio: ["ignore", "pipe", "ignore"] });
  const exited = once(child, "exit");
  const first = await Promise.race([once(child.stdout, "data"), exited.then(() => null)]);
  if (!first) throw new Error("bubblewrap does not run here");
}

export const firstLine: BenchRow = { name: "first-line", run };
