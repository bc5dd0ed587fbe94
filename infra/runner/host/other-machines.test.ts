import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { HostFixture, orderSpec, processesWith, until } from "../testing/host-fixture.ts";

const MIB = 2 ** 20;

describe("a machine without bubblewrap", () => {
  let host: HostFixture | undefined;
  afterEach(() => host?.stop());

  it("refuses orders and says what is missing", async () => {
    host = await HostFixture.start({ bubblewrap: "/nonexistent/bwrap", expectIsolation: false });
    const order = await host.run(["true"]);
    expect(order.exit).toMatchObject({ code: null, signal: null, startFailure: { kind: "isolation" } });
    expect(order.exit?.startFailure?.message).toContain("bubblewrap is not installed");
  });
});

describe("a machine without bubblewrap whose operator accepts that", () => {
  let host: HostFixture;
  beforeAll(async () => {
    host = await HostFixture.start({ bubblewrap: "/nonexistent/bwrap", allowUnisolated: true, expectIsolation: false });
  });
  afterAll(() => host?.stop());

  it("runs commands and says that nothing isolates them", async () => {
    const order = await host.run([
      "sh",
      "-c",
      'test "$PWD" = "$(dirname "$NODUS_CHECKPOINT_DIR")" && echo here; mkdir outputs; echo x > outputs/x; echo "[$https_proxy]"; exit 3',
    ]);
    expect(order.log.toString()).toBe("here\n[]\n");
    expect(order.exit).toMatchObject({ code: 3, startFailure: null });
    expect(order.of("phase")[0]?.isolation).toMatchObject({ level: "none", seccomp: false });
    expect(order.of("output")).toMatchObject([{ name: "outputs.tar" }]);
  });

  it("tells missing programs and quick ones apart", async () => {
    const [missing, quick] = await Promise.all([host.run(["no-such-program"]), host.run(["true"])]);
    expect(missing.exit?.startFailure?.kind).toBe("not_found");
    expect(quick.exit).toMatchObject({ code: 0, startFailure: null });
  });

  it("ends a tree that forked twice and does not listen", async () => {
    const marker = `unisolated-${process.pid}`;
    const order = await host.launch(
      orderSpec(
        [
          "sh",
          "-c",
          `(setsid sh -c 'trap "" TERM HUP; sleep 100 # ${marker}' &); trap '' TERM; echo ready; while :; do sleep 0.1; done # ${marker}`,
        ],
        { limits: { cancelGraceMs: 200 } },
      ),
    );
    await until(() => order.log.includes("ready") && processesWith(marker).length >= 2, "it runs");
    host.intake.want(order, { want: "cancel" });
    await until(() => order.ended, "it ends");
    expect(order.exit).toMatchObject({ code: null, signal: "SIGKILL", killedBy: "cancel" });
    expect(processesWith(marker)).toEqual([]);
  });

  it("ends a guest with its host agent", async () => {
    const marker = `unisolated-host-${process.pid}`;
    const order = await host.launch(
      orderSpec([
        "sh",
        "-c",
        `setsid sh -c 'sleep 100 # ${marker}' & echo ready; while :; do sleep 0.1; done # ${marker}`,
      ]),
    );
    await until(() => order.log.includes("ready"), "it runs");
    await host.killAgent();
    await until(() => processesWith(marker).length === 0, "no process of the guest is left");
    await host.attach();
    await until(() => order.ended, "the next life reports");
    expect(order.exit?.killedBy).toBe("host_shutdown");
  });
});

describe.runIf(process.getuid?.() === 0)("a host agent of an ordinary user", () => {
  const NOBODY = 65_534;
  let host: HostFixture;
  beforeAll(async () => {
    host = await HostFixture.start({ uid: NOBODY });
  });
  afterAll(() => host?.stop());

  it("isolates guests under its own uid, watches their memory, and reports just that", async () => {
    const order = await host.run([
      "sh",
      "-c",
      "id -u; ls /root 2>&1 | grep -c 'No such'; mkdir outputs; echo x > outputs/x",
    ]);
    expect(order.log.toString()).toBe("1000\n1\n");
    expect(order.of("phase")[0]?.isolation).toMatchObject({
      level: "bubblewrap",
      ownUid: false,
      seccomp: true,
      limits: "rlimits",
    });
    expect(order.of("phase")[0]?.isolation.detail).toContain("watched");
    expect(order.of("output")).toHaveLength(1);
    expect(statSync(join(host.folder, "h", "orders")).uid).toBe(NOBODY);
  });

  it("ends a guest that needs more memory than it may", async () => {
    const order = await host.run(
      ["python3", "-c", "import time\na=[bytearray(4<<20) for _ in range(64)]\ntime.sleep(100)"],
      { limits: { memoryBytes: 100 * MIB } },
    );
    expect(order.exit).toMatchObject({ code: 137, signal: null, oom: true, killedBy: "memory" });
  });

  it("removes files that a guest closed to its own user", async () => {
    const order = await host.run(["sh", "-c", "mkdir -p a/b; echo x > a/b/c; chmod 000 a/b a"]);
    expect(order.exit?.code).toBe(0);
    const folder = join(host.folder, "h", "orders", order.spec.orderId);
    await until(() => !existsSync(folder), "its folder is gone");
  });

  it("ends its guests with itself", async () => {
    const marker = `nobodys-guest-${process.pid}`;
    const order = await host.launch(orderSpec(["sh", "-c", `echo ready; sleep 100 # ${marker}`]));
    await until(() => order.log.includes("ready"), "it runs");
    expect(readFileSync(`/proc/${host.pid}/status`, "utf8")).toMatch(/^Uid:\s+65534/m);
    process.kill(host.pid, "SIGTERM");
    await until(() => processesWith(marker).length === 0, "the guest is gone");
  });
});

describe.runIf(process.getuid?.() === 0)("a host agent that can neither isolate nor group its guests", () => {
  it("has what they left ended by its next life when it was killed together with their supervisors", async () => {
    const marker = `ungrouped-${process.pid}`;
    const host = await HostFixture.start({
      ...{ uid: 65_534, bubblewrap: "/nonexistent/bwrap", allowUnisolated: true, expectIsolation: false },
    });
    try {
      const script = `setsid sh -c 'sleep 100 # ${marker}' & echo supervised by $PPID; sleep 100 # ${marker}`;
      const order = await host.launch(orderSpec(["sh", "-c", script]));
      await until(() => order.log.includes("\n") && processesWith(marker).length === 2, "it runs");
      const supervisor = Number(/\d+/.exec(order.log.toString())![0]);
      process.kill(supervisor, "SIGSTOP"); // or it would end them
      await host.killAgent();
      process.kill(supervisor, "SIGKILL");
      expect(processesWith(marker)).toHaveLength(2);
      await host.attach();
      await until(() => processesWith(marker).length === 0, "no process of the guest is left", 2_000);
    } finally {
      await host.stop();
    }
  });
});
