import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HostFixture, orderSpec, until } from "../testing/host-fixture.ts";

/** Runs Python in a guest whose every printed line is `name result`. */
async function probe(host: HostFixture, code: string): Promise<Record<string, string>> {
  const order = await host.run(["python3", "-c", code]);
  expect(order.exit).toMatchObject({ code: 0, startFailure: null });
  return Object.fromEntries(
    order.log
      .toString()
      .trim()
      .split("\n")
      .map((line) => line.split(" ", 2) as [string, string]),
  );
}

const ATTEMPT = `
import ctypes,errno,os,socket
libc=ctypes.CDLL(None,use_errno=True)
def call(name,*args):
  ctypes.set_errno(0)
  r=libc.syscall(*args)
  print(name,'ok' if r>=0 else errno.errorcode[ctypes.get_errno()])
def attempt(name,f):
  try: f(); print(name,'ok')
  except OSError as e: print(name,errno.errorcode[e.errno])
`;

describe("isolation of a guest", () => {
  let host: HostFixture;
  beforeAll(async () => {
    host = await HostFixture.start();
  });
  afterAll(() => host?.stop());

  it.runIf(process.arch === "x64")("refuses the system calls that lead out of it", async () => {
    const results = await probe(
      host,
      `${ATTEMPT}
call('unshare',272,0x10000000)
call('clone_newuser',56,0x10000000|17,0,0,0,0)
call('clone3',435,0,0)
call('ptrace',101,16,1,0,0)
call('mount',165,b'none',b'/tmp',b'tmpfs',0,0)
call('bpf',321,0,0,0)
call('keyctl',250,0,0)
call('io_uring',425,1,0)
call('x32',0x40000000|39)
call('getpid',39)
attempt('vsock',lambda: socket.socket(40,socket.SOCK_STREAM))
attempt('packet',lambda: socket.socket(17,socket.SOCK_RAW))
attempt('alg',lambda: socket.socket(38,socket.SOCK_SEQPACKET))
attempt('inet',lambda: socket.socket(2,socket.SOCK_STREAM).close())
attempt('unix',lambda: socket.socketpair())
t=__import__('threading').Thread(target=os.getpid)
attempt('thread',lambda: (t.start(),t.join()))
attempt('subprocess',lambda: __import__('subprocess').run(['true']))
`,
    );
    expect(results).toEqual({
      ...{ unshare: "EPERM", clone_newuser: "EPERM", clone3: "ENOSYS", ptrace: "EPERM", mount: "EPERM", bpf: "EPERM" },
      ...{
        keyctl: "EPERM",
        io_uring: "EPERM",
        x32: "ENOSYS",
        getpid: "ok",
        vsock: "EAFNOSUPPORT",
        packet: "EAFNOSUPPORT",
      },
      ...{ alg: "EAFNOSUPPORT", inet: "ok", unix: "ok", thread: "ok", subprocess: "ok" },
    });
  });

  it("has no capability and can gain none", async () => {
    const order = await host.run(["sh", "-c", "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"]);
    const status = Object.fromEntries(
      order.log
        .toString()
        .trim()
        .split("\n")
        .map((line) => line.split(/:\s+/)),
    );
    expect(status).toMatchObject({
      CapInh: "0000000000000000",
      CapPrm: "0000000000000000",
      CapEff: "0000000000000000",
      CapBnd: "0000000000000000",
      CapAmb: "0000000000000000",
    });
    expect(status).toMatchObject({ NoNewPrivs: "1", Seccomp: "2" });
  });

  it("can write to its workspace, /tmp and shared memory, and to nothing else", async () => {
    const results = await probe(
      host,
      `${ATTEMPT}
for p in ['/workspace/code/a','/workspace/tmp/a','/workspace/home/a','/tmp/a','/dev/shm/a','/a','/usr/a','/etc/a','/run/a','/run/nodus/a','/dev/a','/var/a','/nodus/a','/proc/sys/kernel/a']:
  attempt(p,lambda: open(p,'w').write('x'))
attempt('sysrq',lambda: open('/proc/sysrq-trigger','w'))
`,
    );
    const writable = Object.entries(results)
      .filter(([, result]) => result === "ok")
      .map(([path]) => path);
    expect(writable).toEqual(["/workspace/code/a", "/workspace/tmp/a", "/workspace/home/a", "/tmp/a", "/dev/shm/a"]);
  });

  it("sees no process, no account and no home of the host", async () => {
    const order = await host.run([
      "sh",
      "-c",
      "ls /proc | grep -c '^[0-9]'; id -u; hostname; ls / | tr '\\n' ' '; echo; cat /etc/shadow /root/x /home 2>&1 | grep -c 'No such file'; cut -d: -f1 /etc/passwd | tr '\\n' ' '",
    ]);
    const [processes, uid, hostname, root, absent, accounts] = order.log.toString().split("\n");
    expect(Number(processes)).toBeLessThan(8);
    expect([uid, hostname, absent, accounts]).toEqual(["1000", "nodus", "3", "root nodus nobody "]);
    expect(root).not.toMatch(/\b(home|root|work|boot|srv|mnt|opt)\b/);
  });

  it("can't read what another guest or the host agent has", async () => {
    const secret = "only-mine";
    const other = await host.launch(
      orderSpec(["sh", "-c", `echo ${secret} > file; chmod 777 . file; echo ready; sleep 100`]),
    );
    await until(() => other.log.includes("ready"), "the other guest runs");
    const theirs = join(host.folder, "h", "orders", other.spec.orderId);
    const look = `cat ${theirs}/workspace/code/file ${theirs}/order.json ${host.folder}/h/host.log /proc/${host.pid}/environ 2>&1; find / -name file -path '*code*' 2>/dev/null; echo looked`;
    const order = await host.run(["sh", "-c", look]);
    expect(order.log.toString()).not.toContain(secret);
    expect(order.log.toString().match(/No such file/g)).toHaveLength(4);
    host.intake.want(other, { want: "stop_budget" });
    await until(() => other.ended, "the other guest ends");
  });

  it.runIf(process.getuid?.() === 0)("has a host uid of its own when the host agent is root", async () => {
    const [a, b] = await Promise.all(
      [0, 1].map(() => host.launch(orderSpec(["sh", "-c", "cat /proc/self/uid_map; touch owned; sleep 100"]))),
    );
    await until(() => a!.log.length > 0 && b!.log.length > 0, "both run");
    const owner = (id: string) =>
      statSync(join(host.folder, "h", "orders", id, "workspace", "code", "owned"), { throwIfNoEntry: false })?.uid ?? 0;
    await until(() => owner(a!.spec.orderId) > 0 && owner(b!.spec.orderId) > 0, "both wrote a file");
    expect(owner(a!.spec.orderId)).toBeGreaterThanOrEqual(200_000);
    expect(owner(a!.spec.orderId)).not.toBe(owner(b!.spec.orderId));
    for (const order of [a!, b!]) host.intake.want(order, { want: "stop_budget" });
    await until(() => a!.ended && b!.ended, "both end");
    expect(a!.of("phase")[0]?.isolation).toMatchObject({ level: "bubblewrap", ownUid: true, seccomp: true });
  });

  it("can't end the host agent by anything that it says to it", async () => {
    const hostile = `
import socket,os,glob
for fd in os.listdir('/proc/2/fd'):
  try: open('/proc/2/fd/'+fd,'w').write('{"event":"exited","code":0}\\n'*1000)
  except OSError: pass
s=socket.socket(socket.AF_UNIX)
try: s.connect('/run/nodus/control.sock'); print('connected')
except OSError as e: print('refused')
os.kill(2,9)
`;
    const order = await host.run(["python3", "-c", hostile]);
    expect(order.log.toString()).not.toContain("connected");
    expect(order.exit).toMatchObject({ code: null, signal: "SIGKILL" });
    expect((await host.run(["true"])).exit?.code).toBe(0);
  });
});

describe("a host agent in a folder whose path is longer than a socket's name may be", () => {
  it("serves its driver and its guests all the same", async () => {
    const deep = join(mkdtempSync("/var/tmp/nodus-deep-"), "d".repeat(80), "e".repeat(80));
    mkdirSync(deep, { recursive: true });
    chmodSync(join(deep, "..", ".."), 0o711);
    const host = await HostFixture.start({ folder: deep });
    try {
      const order = await host.run([
        "sh",
        "-c",
        "curl -s -o /dev/null -w '%{http_code}' -x $http_proxy http://no.where/",
      ]);
      expect(order.log.toString()).toBe("403");
      expect(order.of("egress_denied")).toMatchObject([{ hostname: "no.where" }]);
    } finally {
      await host.stop();
      rmSync(join(deep, "..", ".."), { recursive: true, force: true });
    }
  });
});

describe("a host agent in a folder that guests' users can't reach", () => {
  it.runIf(process.getuid?.() === 0)("refuses orders with the reason instead of running them unisolated", async () => {
    const closed = mkdtempSync("/var/tmp/nodus-closed-");
    mkdirSync(join(closed, "h"));
    writeFileSync(join(closed, "note"), "");
    chmodSync(closed, 0o700);
    const host = await HostFixture.start({ folder: closed, expectIsolation: false });
    try {
      const order = await host.run(["true"]);
      expect(order.exit).toMatchObject({ code: null, killedBy: null, startFailure: { kind: "isolation" } });
      expect(order.exit?.startFailure?.message).toContain("can't pass through");
      expect(order.of("phase")[0]?.isolation.level).toBe("none");
    } finally {
      await host.stop();
      rmSync(closed, { recursive: true, force: true });
    }
  });
});
