import { type ChildProcess, spawn } from "node:child_process";
import { chownSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Account } from "./account.ts";
import { type PostgresBinaries, program, programEnvironment } from "./binaries.ts";
import { DATABASE_USER, readPassword } from "./cluster.ts";
import { clearStrangersLocks, processStart, readPidFile } from "./pid-file.ts";
import { clusterOf, socketFolderOf } from "./place.ts";
import { serverSettings } from "./server-settings.ts";

/** A PostgreSQL server that takes connections. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  /** Folder of its Unix socket; null when it has none. */
  readonly socketFolder: string | null;
  /** True when it was running already, left by a platform that was killed. */
  readonly adopted: boolean;
  /** Resolves, with how it ended, when the process is gone. */
  readonly gone: Promise<string>;
}

export interface LaunchOptions {
  folder: string;
  binaries: PostgresBinaries;
  account: Account | null;
  /** Null: any free port. A server that must come back for its clients comes back on its port. */
  port: number | null;
  /** See `serverSettings`. */
  durable: boolean;
  timeoutMs: number;
}

const POLL_MS = 20;
const ADOPTED_POLL_MS = 500;
/** The kernel takes 107 bytes. */
const LONGEST_SOCKET_PATH = 107;
const LOG_ROTATE_BYTES = 16 * 1024 * 1024;

/**
 * The server of a cluster: the one that runs already, or a new one. Retries within the time limit, since a predecessor
 * that was killed may need a moment to let go of its shared memory, and two platforms may start at once.
 */
export async function launch(options: LaunchOptions): Promise<Postmaster> {
  const deadline = performance.now() + options.timeoutMs;
  for (;;) {
    const running = readPidFile(options.folder);
    const outcome = running ? await adopt(options, running.pid, deadline) : await start(options, deadline);
    if (typeof outcome !== "string") return outcome;
    if (performance.now() + 250 > deadline)
      throw new Error(
        `PostgreSQL did not start within ${options.timeoutMs} ms: ${outcome}\n${logTail(options.folder)}`,
      );
    await sleep(250);
  }
}

/** Asks for a fast shutdown (open transactions are rolled back), then insists. Resolves when the process is gone. */
export async function shutDown(postmaster: Postmaster, timeoutMs: number): Promise<void> {
  for (const [signal, waitMs] of [
    ["SIGINT", timeoutMs],
    ["SIGQUIT", 5_000],
    ["SIGKILL", 5_000],
  ] as const) {
    signalProcess(postmaster.pid, signal);
    const waited = new AbortController();
    const gone = await Promise.race([
      postmaster.gone,
      sleep(waitMs, null, { signal: waited.signal }).catch(() => null),
    ]);
    waited.abort();
    if (gone !== null) return;
  }
  throw new Error(`PostgreSQL (process ${postmaster.pid}) does not end`);
}

/** The end of PostgreSQL's log, for an error's text. */
export function logTail(folder: string, lines = 15): string {
  const file = logFile(folder);
  return existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").slice(-lines).join("\n") : "";
}

/** Logs in once; throws what the server answers. */
async function tryLogin(folder: string, port: number): Promise<void> {
  const client = new pg.Client({
    host: "127.0.0.1",
    port,
    user: DATABASE_USER,
    password: readPassword(folder),
    database: "postgres",
    connectionTimeoutMillis: 3_000,
  });
  client.on("error", () => {}); // a server that ends while we ask is reported by the query itself
  try {
    await client.connect();
    await client.query("select 1");
  } finally {
    await client.end().catch(() => {}); // the answer is known already
  }
}

async function start(options: LaunchOptions, deadline: number): Promise<Postmaster | string> {
  clearStrangersLocks(options.folder);
  const port = options.port ?? (await freePort());
  const child = spawnServer(options, port);
  const gone = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(signal ? `killed by ${signal}` : `exit code ${code}`));
  });
  let ended: string | null = null;
  void gone.then((how) => {
    ended = how;
  });
  let answer = "it does not take connections";
  while (performance.now() < deadline) {
    if (ended !== null) return ended;
    const file = readPidFile(options.folder);
    if (file?.pid === child.pid && file?.ready) {
      try {
        await tryLogin(options.folder, port);
        return { pid: child.pid!, port, socketFolder: file.socketFolder, adopted: false, gone };
      } catch (error) {
        answer = (error as Error).message;
      }
    }
    await sleep(POLL_MS);
  }
  child.kill("SIGQUIT");
  await gone;
  return answer;
}

function spawnServer(options: LaunchOptions, port: number): ChildProcess {
  const file = logFile(options.folder);
  if (existsSync(file) && statSync(file).size > LOG_ROTATE_BYTES) renameSync(file, `${file}.1`);
  const log = openSync(file, "a", 0o600);
  const parameters = Object.entries(serverSettings(port, socketFolder(options), options.durable)).flatMap(([k, v]) => [
    "-c",
    `${k}=${v}`,
  ]);
  try {
    // A session of its own: an interrupt from the terminal must reach the platform, which then drains and stops this.
    return spawn(program(options.binaries, "postgres"), ["-D", clusterOf(options.folder), ...parameters], {
      ...(options.account ?? {}),
      detached: true,
      stdio: ["ignore", log, log],
      cwd: "/",
      env: programEnvironment(options.binaries),
    });
  } finally {
    closeSync(log);
  }
}

/** A folder for the socket, which saves a fifth of a query's cost against TCP; null where its path is too long. */
function socketFolder({ folder, account }: LaunchOptions): string | null {
  const sockets = socketFolderOf(folder);
  if (Buffer.byteLength(path.join(sockets, ".s.PGSQL.65535")) > LONGEST_SOCKET_PATH) return null;
  mkdirSync(sockets, { recursive: true, mode: 0o711 });
  if (account) chownSync(sockets, account.uid, account.gid);
  return sockets;
}

/** Waits until the running server takes our password, or is gone. A text says why not. */
async function adopt(options: LaunchOptions, pid: number, deadline: number): Promise<Postmaster | string> {
  const born = processStart(pid);
  let answer = "it does not take connections";
  while (performance.now() < deadline) {
    const file = readPidFile(options.folder);
    if (file?.pid !== pid || born === null) return "the running server ended";
    if (file.ready) {
      try {
        await tryLogin(options.folder, file.port);
        return { ...file, adopted: true, gone: watch(pid, born) };
      } catch (error) {
        answer = (error as Error).message;
      }
    }
    await sleep(POLL_MS * 5);
  }
  return `process ${pid} runs on this folder, but ${answer}`;
}

/** A process that is not our child tells nobody that it ended, so it is looked at. */
async function watch(pid: number, born: string): Promise<string> {
  while (processStart(pid) === born) await sleep(ADOPTED_POLL_MS, undefined, { ref: false });
  return "it ended";
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // gone already is what we want
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

function logFile(folder: string): string {
  return path.join(folder, "postgres.log");
}
