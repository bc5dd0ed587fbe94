import { type ChildProcessByStdio, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import pg from "pg";
import { onTestFinished } from "vitest";
import { readPidFile } from "../../infra/db/embedded/pid-file.ts";
import { PROJECT_ROOT } from "../../infra/telemetry/project-root.ts";

/** What `embedded-postgres-process.ts` prints. */
export interface Ready {
  url: string;
  adopted: boolean;
  folder: string;
  uid: number | null;
  pid: number;
}

/** A data folder that every account may pass through; it goes at the end of the test, with a server left on it. */
export function dataFolder(mode = 0o711): string {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-data-"));
  chmodSync(folder, mode);
  onTestFinished(() => {
    const server = readPidFile(path.join(folder, "postgres"));
    if (server) process.kill(server.pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

export interface HolderProcess {
  ready: Ready;
  /** Kills the process, not the server. */
  kill(): Promise<void>;
  /** Lets it stop the server; resolves with its exit code. */
  stop(): Promise<number | null>;
}

/** Starts `embedded-postgres-process.ts`; `prefix` is a command that runs another, such as `setpriv …`. */
export async function holdPostgres(
  dataDir: string,
  { prefix = [] as string[], root = PROJECT_ROOT, node = process.execPath, durable = false } = {},
): Promise<HolderProcess> {
  const script = path.join(root, "tests", "support", "embedded-postgres-process.ts");
  const [program, ...args] = [...prefix, node, script, dataDir, durable ? "durable" : "fast"];
  const child = spawn(program!, args, { cwd: "/", stdio: ["pipe", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  const ready = await firstLine(child);
  return {
    ready,
    kill: async () => {
      child.kill("SIGKILL");
      await exited;
    },
    stop: async () => {
      child.stdin.end();
      return await exited;
    },
  };
}

async function firstLine(child: ChildProcessByStdio<Writable, Readable, Readable>): Promise<Ready> {
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line) as Ready;
  throw new Error(`the process ended before PostgreSQL was ready:\n${complaints}`);
}

/** One statement on a connection of its own. */
export async function query(url: string, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on("error", () => {}); // reported by the query
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end().catch(() => {}); // the answer is known
  }
}

/** Repeats `attempt` until it does not throw; its last error when time is over. */
export async function eventually<T>(attempt: () => Promise<T> | T, timeoutMs = 40_000): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
