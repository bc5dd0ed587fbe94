import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { freePort } from "./platform-place.ts";
import { until } from "./until.ts";

/** An S3 server of one test file, which verifies signatures: OpenStack Swift with its S3 interface. */
export interface TestS3 {
  endpoint: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Everything that its processes wrote. */
  output(): string;
  close(): Promise<void>;
}

const REGION = "us-east-1";
const USER = { accessKeyId: "test:tester", secretAccessKey: "testing-secret" };
const SERVERS = ["object", "container", "account"] as const;
const START_MS = 40_000;

/** Why there is no S3 server for tests on this machine; null when there is one. */
export function swiftMissing(): string | null {
  try {
    for (const server of ["proxy", ...SERVERS])
      execFileSync("sh", ["-c", `command -v swift-${server}-server`], { stdio: "ignore" });
    return null;
  } catch {
    return "Swift is not installed (Debian: apt-get install swift-proxy swift-account swift-container swift-object)";
  }
}

/** Starts Swift on free ports of this machine; nothing of it outlives `close`. */
export async function testS3(): Promise<TestS3> {
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-swift-"));
  const processes: ChildProcess[] = [];
  let output = "";
  const close = async () => {
    await Promise.all(processes.map(ended));
    process.off("exit", onExit);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  const onExit = () => {
    for (const child of processes) killGroup(child); // a test run that breaks off leaves no server
  };
  process.once("exit", onExit);
  const start = (server: string) => {
    const child = spawn(`swift-${server}-server`, [path.join(folder, `${server}.conf`)], {
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // a group of its own: it forks
    });
    processes.push(child);
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (text: Buffer) => {
        output += text;
      });
  };
  try {
    const ports = await configure(folder);
    for (const server of ["proxy", ...SERVERS]) start(server);
    await until("Swift answers", () => answers(Object.values(ports), processes, () => output), {
      timeoutMs: START_MS,
      everyMs: 100,
    });
    const endpoint = `http://127.0.0.1:${ports.proxy}`;
    return { endpoint, region: REGION, ...USER, output: () => output, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Ports = Record<"proxy" | (typeof SERVERS)[number], number>;

/** Writes configuration and rings into the folder; resolves to the ports that its servers will take. */
async function configure(folder: string): Promise<Ports> {
  const ports = {
    proxy: await freePort(),
    object: await freePort(),
    container: await freePort(),
    account: await freePort(),
  };
  mkdirSync(path.join(folder, "devices", "disk"), { recursive: true });
  const write = (name: string, text: string) => writeFileSync(path.join(folder, name), text);
  write(
    "swift.conf",
    "[swift-hash]\nswift_hash_path_prefix = tests\nswift_hash_path_suffix = tests\n[storage-policy:0]\nname = only\ndefault = yes\n",
  );
  const common = (port: number) => `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
workers = 0
user = ${userInfo().username}
swift_dir = ${folder}
devices = ${folder}/devices
mount_check = false
disable_fallocate = true
log_address = ${folder}/no-log
log_level = WARNING
`;
  for (const server of SERVERS)
    write(
      `${server}.conf`,
      `${common(ports[server])}
[pipeline:main]
pipeline = ${server}-server
[app:${server}-server]
use = egg:swift#${server}
`,
    );
  write(
    "proxy.conf",
    `${common(ports.proxy)}
[pipeline:main]
pipeline = catch_errors cache listing_formats bulk s3api tempauth copy slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
# The interface wants a cache to be named; nobody listens there, and it does without.
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = ${USER.secretAccessKey} .admin
[filter:s3api]
use = egg:swift#s3api
location = ${REGION}
[filter:slo]
use = egg:swift#slo
[filter:copy]
use = egg:swift#copy
[filter:bulk]
use = egg:swift#bulk
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:catch_errors]
use = egg:swift#catch_errors
`,
  );
  await promisify(execFile)("/usr/bin/python3", [
    "-c",
    RINGS,
    folder,
    `${ports.account}`,
    `${ports.container}`,
    `${ports.object}`,
  ]);
  return ports;
}

/** One partition's worth of rings with a single device. */
const RINGS = `
import sys, os
from swift.common.ring import RingBuilder
folder, *ports = sys.argv[1:]
for name, port in zip(("account", "container", "object"), ports):
    builder = RingBuilder(2, 1, 0)
    builder.add_dev(dict(id=0, region=1, zone=1, weight=1.0, ip="127.0.0.1", port=int(port),
                         replication_ip="127.0.0.1", replication_port=int(port), device="disk", meta=""))
    builder.rebalance()
    builder.get_ring().save(os.path.join(folder, name + ".ring.gz"))
`;

async function answers(
  ports: readonly number[],
  processes: readonly ChildProcess[],
  output: () => string,
): Promise<boolean> {
  const dead = processes.find((child) => child.exitCode !== null || child.signalCode !== null);
  if (dead) throw new Error(`${dead.spawnfile} ended with ${dead.exitCode ?? dead.signalCode}:\n${output()}`);
  const answered = await Promise.all(ports.map((port) => fetch(`http://127.0.0.1:${port}`).catch(() => null)));
  return answered.every((answer) => answer !== null); // null: does not listen yet
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return killGroup(child);
  const exit = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  killGroup(child);
  await exit;
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid) process.kill(-pid, "SIGKILL");
  } catch {
    // nothing of the group is left
  }
}
