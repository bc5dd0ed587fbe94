import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

/** A Redis server of one test. */
export interface TestRedis {
  url: string;
  port: number;
  /** Kills it as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on the same port, with what its options made it write to disk; by default that is nothing. */
  start(): Promise<void>;
  /** Starts another one on the same port, which knows nothing. */
  startEmpty(): Promise<void>;
  close(): Promise<void>;
}

/** Why there is no Redis for tests on this machine; null when there is one. */
export function redisMissing(): string | null {
  try {
    execFileSync("redis-server", ["--version"], { stdio: "ignore" });
    return null;
  } catch {
    return "redis-server is not installed (Debian: apt-get install redis-server)";
  }
}

/**
 * Starts a Redis server on a free port of this machine; nothing of it outlives `close`. `more` are options of its
 * command line.
 */
export async function testRedis(more: readonly string[] = []): Promise<TestRedis> {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-redis-"));
  const port = await freePort();
  let server: ChildProcess | null = null;
  const start = async () => {
    const options = ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--dir", folder, ...more];
    server = spawn("redis-server", options, { stdio: ["ignore", "pipe", "inherit"] });
    await saysReady(server);
  };
  const kill = async () => {
    if (!server || server.exitCode !== null) return;
    const ended = new Promise((resolve) => server?.once("exit", resolve));
    server.kill("SIGKILL");
    await ended;
    server = null;
  };
  const onExit = () => void server?.kill("SIGKILL"); // a test run that breaks off leaves no server
  process.once("exit", onExit);
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    start,
    startEmpty: async () => {
      for (const name of readdirSync(folder)) rmSync(path.join(folder, name), { recursive: true });
      await start();
    },
    kill,
    close: async () => {
      await kill();
      process.off("exit", onExit);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function saysReady(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("exit", (code) => reject(new Error(`redis-server ended with ${code}`)));
    server.stdout?.on("data", (said: Buffer) => {
      if (said.includes("Ready to accept connections")) resolve();
    });
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
