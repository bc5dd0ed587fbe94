import { spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import type { Environment } from "./python.ts";
import type { World } from "./world.ts";

/** A release's checks may take this long together. */
const TIME_LIMIT_MS = 20 * 60_000;

/** What one check of one release found. */
export interface CheckResult {
  check: string;
  /** A call that is served, or one that this release of the platform refuses by name. */
  kind: "served" | "refused";
  /** `absent`: the client's release has no such call. */
  outcome: "passed" | "failed" | "absent";
  /** Why it failed or is absent. */
  detail: string;
  seconds: number;
}

/** Runs every check of one installed client against the platform, and hands out each result as it comes. */
export async function checkRelease(
  environment: Environment,
  world: World,
  onResult: (result: CheckResult) => void = () => {},
): Promise<CheckResult[]> {
  const child = spawn(environment.program("python"), ["-B", path.join(import.meta.dirname, "python", "checks.py")], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: TIME_LIMIT_MS,
    env: {
      PATH: process.env.PATH,
      // Without a configuration file of whoever runs this.
      HOME: world.folder,
      NODUS_API_KEY: world.apiKey,
      NODUS_BASE_URL: world.platform.origin,
      NODUS_CLIENTS_FOLDER: world.folder,
      NODUS_CLIENTS_WORLD: JSON.stringify(world.settings),
    },
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-4_000);
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const results: CheckResult[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{"check"')) continue; // what a client prints of its own
    const result = JSON.parse(line) as CheckResult;
    results.push(result);
    onResult(result);
  }
  const code = await ended;
  if (code !== 0) results.push(brokenOff(code, stderr));
  return results;
}

function brokenOff(code: number | null, stderr: string): CheckResult {
  const detail = `ended with ${code ?? "a signal"}: ${stderr.trim().split("\n").at(-1) ?? ""}`;
  return { check: "every check ran", kind: "served", outcome: "failed", detail, seconds: 0 };
}
