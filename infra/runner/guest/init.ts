/**
 * The first program of a guest. It starts the command, tells the host how that went, passes signals on and carries
 * proxy connections out of the guest's empty network to the host's socket. It holds no privilege that the command has
 * not: both have one uid, and the host trusts neither.
 *
 * Runs under the host's Node binary without any package: only Node's own modules may be imported here.
 * argv[2] is the run directory that holds the sockets.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import type { FromInit, ToInit } from "./messages.ts";

type Start = Extract<ToInit, { op: "start" }>;

// Sockets are dialled by a relative name: a path in sun_path may have no more than 107 bytes.
process.chdir(process.argv[2] ?? ".");
const control = net.connect("control.sock");
let command: ChildProcess | null = null;
let reach: Start["reach"] = "namespace";

// Without its host a guest must not live on; the namespace ends with its first process.
control.on("error", () => process.exit(1)).on("close", () => leave());

let buffered = "";
control.setEncoding("utf8").on("data", (text: string) => {
  buffered += text;
  for (let end = buffered.indexOf("\n"); end >= 0; end = buffered.indexOf("\n")) {
    obey(JSON.parse(buffered.slice(0, end)) as ToInit);
    buffered = buffered.slice(end + 1);
  }
});

function obey(message: ToInit): void {
  if (message.op === "signal") {
    deliver(message.signal);
    return;
  }
  reach = message.reach;
  if (message.proxy) listenForProxy(message);
  else start(message);
}

function listenForProxy(message: Start): void {
  const listener = net.createServer({ allowHalfOpen: true }, carryOut);
  listener.on("error", (error) => tell({ event: "not_started", code: "EPROXY", message: error.message }));
  listener.listen(3128, "127.0.0.1", () => start(message));
}

function start(order: Start): void {
  const [file, ...args] = order.command;
  if (!file) {
    tell({ event: "not_started", code: "ENOENT", message: "there is no command" });
    return;
  }
  tell({ event: "starting" });
  const child = spawnCommand(order, file, args);
  if (!child) return;
  child.once("spawn", () => {
    command = child;
    tell({ event: "started" });
  });
  child.once("error", (error: NodeJS.ErrnoException) => {
    if (!command) tell({ event: "not_started", code: error.code ?? "EUNKNOWN", message: error.message });
  });
  child.once("exit", (code, signal) => tell({ event: "exited", code, signal }));
}

/** Null when it was told that the command can't be executed: some reasons are thrown, others follow as an event. */
function spawnCommand(order: Start, file: string, args: string[]): ChildProcess | null {
  adjustOutOfMemoryScore(500);
  try {
    return spawn(file, args, {
      cwd: order.workingDirectory,
      env: order.reach === "group" ? { ...order.env, ...ownMark() } : order.env,
      stdio: ["ignore", order.stdoutFd, order.stderrFd],
      detached: order.reach === "group",
    });
  } catch (error) {
    const { code = "EUNKNOWN", message } = error as NodeJS.ErrnoException;
    tell({ event: "not_started", code, message: message.slice(0, 200) });
    return null;
  } finally {
    adjustOutOfMemoryScore(0);
  }
}

/** The command is the first that the kernel kills for memory, so that init lives to tell. Children inherit the score. */
function adjustOutOfMemoryScore(score: number): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", String(score));
  } catch {
    // Not permitted everywhere; the host then learns of the kill from the group's counter alone.
  }
}

/** Every process of the guest but the namespace's reaper and init itself, which kill(-1) leaves out. */
function deliver(signal: NodeJS.Signals): void {
  const target = reach === "namespace" ? -1 : command?.pid ? -command.pid : null;
  if (target === null) return;
  try {
    process.kill(target, signal);
  } catch {
    // ESRCH: nobody is left to be told.
  }
}

function carryOut(inside: net.Socket): void {
  const outside = net.connect({ path: "egress.sock", allowHalfOpen: true });
  inside.on("error", () => outside.destroy()).on("close", () => outside.destroy());
  outside.on("error", () => inside.destroy()).on("close", () => inside.destroy());
  inside.pipe(outside).pipe(inside);
}

function tell(message: FromInit): void {
  control.write(`${JSON.stringify(message)}\n`);
}

/** What the host finds every process of a guest by that has no namespace; a namespace ends with this process. */
function ownMark(): { NODUS_OWNER?: string } {
  const { NODUS_OWNER } = process.env;
  return NODUS_OWNER === undefined ? {} : { NODUS_OWNER };
}

function leave(): never {
  const { NODUS_OWNER } = ownMark();
  if (reach === "group" && NODUS_OWNER !== undefined) {
    for (let round = 0; round < 20 && killMarked(`NODUS_OWNER=${NODUS_OWNER}`); round++);
  }
  process.exit(0);
}

/** False once there is nobody else. */
function killMarked(variable: string): boolean {
  let found = false;
  for (const pid of readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)) {
    try {
      const marked = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(variable);
      if (!marked || pid === process.pid) continue;
      process.kill(pid, "SIGKILL");
      found = true;
    } catch {
      // Gone meanwhile, or another user's, whose environment may not be read.
    }
  }
  return found;
}
