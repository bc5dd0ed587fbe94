import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HostFixture, orderSpec, processesWith, until } from "../testing/host-fixture.ts";

const MIB = 2 ** 20;
const python = (code: string) => ["python3", "-c", code];

/** The weight of a guest's control group in units of version 1, whichever the machine has; null without one. */
function sharesOf(orderId: string): number | null {
  const [v1] = globSync(`/sys/fs/cgroup/cpu/**/nodus-*/${orderId}/cpu.shares`);
  if (v1) return Number(readFileSync(v1, "utf8"));
  const [v2] = globSync(`/sys/fs/cgroup/**/nodus-*/${orderId}/cpu.weight`);
  return v2 ? Math.round((Number(readFileSync(v2, "utf8")) * 1024) / 100) : null;
}

const NO_SPACE = /No space left on device$/;

describe("the limits of a guest", () => {
  let host: HostFixture;
  beforeAll(async () => {
    host = await HostFixture.start();
  });
  afterAll(() => host?.stop());

  it("end a command that needs more memory, and say so with exit code 137", async () => {
    const order = await host.run(python("a=[bytearray(8<<20) for _ in range(64)]"), {
      limits: { memoryBytes: 100 * MIB },
    });
    expect(order.exit).toMatchObject({ code: 137, signal: null, oom: true, startFailure: null });
    expect(order.ended).toBe(true);
  });

  it("tell of memory when a child of the command was killed for it and the command failed over that", async () => {
    const child = "python3 -c 'a=[bytearray(8<<20) for _ in range(64)]'; exit $?";
    const order = await host.run(["sh", "-c", child], { limits: { memoryBytes: 100 * MIB } });
    expect(order.exit).toMatchObject({ code: 137, oom: true });
  });

  it("do not call a command that was killed by a signal out of memory", async () => {
    const order = await host.run(["sh", "-c", "kill -9 $$"]);
    expect(order.exit).toMatchObject({ code: null, signal: "SIGKILL", oom: false });
  });

  it("bound the number of processes, for this guest alone", async () => {
    const bomb =
      "import os,time\nn=0\ntry:\n  while n<500:\n    if os.fork()==0: time.sleep(30)\n    n+=1\nexcept BlockingIOError: print('stopped at',n)";
    const [order, neighbour] = await Promise.all([
      host.run(python(bomb), { limits: { processes: 50 } }),
      host.run(["sh", "-c", "true | true; echo fine"]),
    ]);
    expect(Number(/stopped at (\d+)/.exec(order.log.toString())?.[1])).toBeLessThan(50 + 24);
    expect(order.exit?.code).toBe(0);
    expect(neighbour.log.toString()).toBe("fine\n");
  });

  it("leave nothing of a tree that never stops forking once it is cancelled", { timeout: 60_000 }, async () => {
    const marker = `forks-on-${process.pid}`;
    const bomb = `import os # ${marker}\nwhile True:\n  try: os.fork()\n  except OSError: pass`;
    const order = await host.launch(orderSpec(python(bomb), { limits: { processes: 300, memoryBytes: 2048 * MIB } }));
    await until(() => processesWith(marker).length >= 300, "it has all the processes that it may have");
    await host.client.ask({ op: "terminate", orderId: order.spec.orderId });
    await until(() => order.ended, "it ends");
    expect(order.exit).toMatchObject({ code: null, signal: "SIGKILL", killedBy: "cancel" });
    expect(processesWith(marker)).toEqual([]);
  });

  it("weigh a command by its share of the processor from its first instruction on", async () => {
    const order = await host.launch(orderSpec(["sleep", "60"], { limits: { cpuMillis: 250 } }));
    await until(() => order.of("phase").some(({ phase }) => phase === "running"), "the command runs");
    const { isolation } = await host.client.ask({ op: "hello", intakeUrl: host.intake.url });
    expect(sharesOf(order.spec.orderId)).toBe(isolation.limits === "rlimits" ? null : 256);
    await host.client.ask({ op: "terminate", orderId: order.spec.orderId });
    await until(() => order.ended, "it ends");
  });

  it("bound open files", async () => {
    const order = await host.run(["sh", "-c", "ulimit -n; ulimit -c"], { limits: { openFiles: 333 } });
    expect(order.log.toString()).toBe("333\n0\n");
  });

  it("bound /tmp and shared memory by their size", async () => {
    const fill =
      "head -c 20000000 /dev/zero > /tmp/x || stat -c %s /tmp/x; head -c 20000000 /dev/zero > /dev/shm/x || stat -c %s /dev/shm/x";
    const order = await host.run(["sh", "-c", fill], { limits: { tmpBytes: 4 * MIB } });
    const lines = order.log.toString().trim().split("\n").sort(); // two pipes: their order is whatever it was
    expect(lines).toEqual(["4194304", "4194304", expect.stringMatching(NO_SPACE), expect.stringMatching(NO_SPACE)]);
  });

  it("end a guest that fills the disk with many files", async () => {
    const fill = "i=0; while [ $i -lt 400 ]; do i=$((i+1)); head -c 1000000 /dev/zero > f$i; done; sleep 100";
    const order = await host.run(["sh", "-c", fill], { limits: { diskBytes: 100 * MIB } });
    expect(order.exit).toMatchObject({ code: null, signal: "SIGKILL", killedBy: "disk" });
    expect(order.of("output")).toEqual([]);
  });

  it("stop a single file at the disk's size", async () => {
    const order = await host.run(["sh", "-c", "trap '' XFSZ; head -c 20000000 /dev/zero > big; stat -c %s big"], {
      limits: { diskBytes: 8 * MIB },
    });
    expect(order.log.toString()).toContain(`${8 * MIB}\n`);
  });

  it("leave no control group behind", async () => {
    const spec = orderSpec(["sh", "-c", "cat /proc/self/cgroup; sleep 100"]);
    const order = await host.launch(spec);
    await until(() => order.log.length > 0, "it runs");
    const limits = order.of("phase")[0]?.isolation.limits;
    // Where the kernel gives no groups, watchdogs stand in, and the report must say so.
    if (limits === "rlimits") return expect(order.log.toString()).not.toContain("/nodus-");
    const own = readFileSync(`/proc/${host.pid}/cgroup`, "utf8");
    const [, path = ""] = (limits === "cgroup-v1" ? /\d+:pids:(.*)/ : /0::(.*)/).exec(own) ?? [];
    const [, base = ""] = new RegExp(`(nodus-[0-9a-f]+)/${spec.orderId}`).exec(order.log.toString()) ?? [];
    const home = `/sys/fs/cgroup/${limits === "cgroup-v1" ? "pids" : ""}${path}/${base}`;
    expect(existsSync(`${home}/${spec.orderId}`)).toBe(true);
    host.intake.want(order, { want: "stop_deadline" });
    await until(() => order.ended, "it ends");
    expect(order.exit?.killedBy).toBe("deadline");
    expect(readdirSync(home, { withFileTypes: true }).filter((entry) => entry.isDirectory())).toEqual([]);
  });

  it("are measured and told with each beat", async () => {
    const order = await host.launch(
      orderSpec(
        python(
          "import time\na=bytearray(50<<20)\nwhile time.process_time()<0.5: pass\nprint('ready',flush=True)\ntime.sleep(100)",
        ),
      ),
    );
    await until(
      () => order.log.includes("ready") && order.usage !== null && order.usage.cpuMs >= 300,
      "a beat tells its use",
    );
    expect(order.usage?.memoryBytes).toBeGreaterThan(50 * MIB);
    host.intake.want(order, { want: "stop_budget" });
    await until(() => order.ended, "it ends");
    expect(order.exit?.killedBy).toBe("funding");
  });
});
