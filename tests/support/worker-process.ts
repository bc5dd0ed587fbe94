import { spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";

export interface HeldQueue {
  databaseUrl: string;
  redisUrl?: string | undefined;
  queue: string;
  lockMs: number;
}

/** A process with a worker that takes one job and never ends it. */
export interface HoldingProcess {
  /** Resolves when it has taken a job. */
  taken: Promise<void>;
  kill(): void;
}

/** Starts such a process and waits until its worker listens. */
export async function holdJob(held: HeldQueue): Promise<HoldingProcess> {
  const script = path.join(import.meta.dirname, "holding-worker.ts");
  const child = spawn(process.execPath, [script, JSON.stringify(held)], { stdio: ["ignore", "pipe", "inherit"] });
  const kill = () => void child.kill("SIGKILL");
  onTestFinished(kill);
  const said = createInterface({ input: child.stdout });
  const hears = (word: string) =>
    new Promise<void>((resolve, reject) => {
      said.on("line", (line) => line === word && resolve());
      child.once("exit", (code) => reject(new Error(`the worker process ended with ${code} before it said ${word}`)));
    });
  const taken = hears("taken");
  taken.catch(() => {}); // awaited by the test, if at all
  await hears("listening");
  return { taken, kill };
}
