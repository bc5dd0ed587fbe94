import { spawn } from "node:child_process";
import { builtCommandLine } from "./platform-build.ts";

/** A command of the command line in a process of its own. */
export interface Command {
  readonly pid: number;
  /** What it has printed so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves when it is gone; never rejects. */
  readonly ended: Promise<{ code: number | null; stdout: string; stderr: string }>;
}

/** Starts `nodus` with these arguments; beyond `environment` it gets nothing but the PATH. */
export async function beginCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  cwd = "/",
): Promise<Command> {
  const child = spawn(process.execPath, [await builtCommandLine(), ...args], {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH, ...environment },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Awaited<Command["ended"]>>((resolve) =>
    child.once("close", (code) => resolve({ code, stdout, stderr })),
  );
  return { pid: child.pid!, stdout: () => stdout, stderr: () => stderr, ended };
}
