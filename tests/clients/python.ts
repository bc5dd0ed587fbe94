import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { projectFile } from "../../infra/telemetry/project-root.ts";

/** Below `node_modules`: nothing of it is ever committed, and a fresh install starts afresh. */
const ENVIRONMENTS = projectFile("node_modules", ".cache", "nodus-clients");
const INSTALL_MS = 300_000;
/** How pip says that it does not reach its index. */
const UNREACHABLE = /Retrying \(Retry|NewConnectionError|ConnectTimeoutError|Temporary failure in name resolution/;

const run = promisify(execFile);

/** Why nothing can be checked on this machine, which is no failure of the platform's. */
export class Unavailable extends Error {}

/** A Python virtual environment with pinned packages. */
export interface Environment {
  /** The programs of the environment: `program("python")`. */
  program(name: string): string;
}

/** The environment that has what a file of pins names; kept for later runs. Throws `Unavailable` where none can be made. */
export async function environmentWith(requirementsFile: string): Promise<Environment> {
  const pins = readFileSync(path.join(import.meta.dirname, requirementsFile), "utf8");
  const digest = createHash("sha256").update(pins).digest("hex").slice(0, 16);
  const folder = path.join(ENVIRONMENTS, `${path.basename(requirementsFile, ".txt")}-${digest}`);
  const ready = path.join(folder, "complete");
  if (!existsSync(ready)) {
    rmSync(folder, { recursive: true, force: true });
    await make(folder, path.join(import.meta.dirname, requirementsFile));
    mkdirSync(ready);
  }
  return { program: (name) => path.join(folder, "bin", name) };
}

async function make(folder: string, requirementsFile: string): Promise<void> {
  mkdirSync(ENVIRONMENTS, { recursive: true });
  await run("python3", ["-m", "venv", folder], { timeout: INSTALL_MS }).catch((error: Failure) => {
    rmSync(folder, { recursive: true, force: true });
    throw new Unavailable(
      error.code === "ENOENT"
        ? "there is no python3 (Debian package python3)"
        : `python3 makes no virtual environment (Debian package python3-venv): ${lastLine(error)}`,
    );
  });
  const install = ["-m", "pip", "install", "--quiet", "--no-input", "--retries", "2", "-r", requirementsFile];
  await run(path.join(folder, "bin", "python"), install, { timeout: INSTALL_MS }).catch((error: Failure) => {
    rmSync(folder, { recursive: true, force: true });
    if (UNREACHABLE.test(error.stderr ?? "")) throw new Unavailable("the Python package index cannot be reached");
    throw new Error(`${path.basename(requirementsFile)} cannot be installed: ${lastLine(error)}`, { cause: error });
  });
}

/** Versions that the package index has of a package, newest first; empty where it does not say. */
export async function publishedVersions(environment: Environment, packageName: string): Promise<string[]> {
  const asked = await run(environment.program("python"), ["-m", "pip", "index", "versions", packageName], {
    timeout: 60_000,
  }).catch(() => null); // a note of the report depends on it, no check
  const line = asked?.stdout.split("\n").find((one) => one.startsWith("Available versions: "));
  return line?.slice("Available versions: ".length).split(", ") ?? [];
}

interface Failure extends Error {
  code?: string | number;
  stderr?: string;
  stdout?: string;
}

function lastLine({ stderr, stdout, message }: Failure): string {
  return (
    `${stdout ?? ""}\n${stderr ?? ""}`
      .trim()
      .split("\n")
      .findLast((line) => line.trim() !== "") ?? message
  );
}
