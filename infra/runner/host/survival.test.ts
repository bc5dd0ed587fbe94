import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFixture, orderSpec, processesWith, until } from "../testing/host-fixture.ts";

const numbers = (count: number) => Array.from({ length: count }, (_, i) => `line ${i + 1}\n`).join("");
const counting = (count: number, pause: string) => [
  "sh",
  "-c",
  `i=0; while [ $i -lt ${count} ]; do i=$((i+1)); echo "line $i"; ${pause}; done`,
];

describe("what a host agent stands", () => {
  let host: HostFixture;
  beforeEach(async () => {
    host = await HostFixture.start();
  });
  afterEach(() => host?.stop());

  it("goes on while the platform is dead, and replays its log byte for byte", async () => {
    const order = await host.launch(orderSpec(counting(200, "sleep 0.01")));
    for (let crash = 0; crash < 3; crash++) {
      await until(() => order.log.length > crash * 200, "some log came");
      await host.intake.stop();
      await new Promise((resolve) => setTimeout(resolve, 150));
      await host.intake.start();
    }
    await until(() => order.ended, "it ends");
    expect(order.log.toString()).toBe(numbers(200));
    expect(order.exit).toMatchObject({ code: 0, killedBy: null });
    expect(order.records.map((record) => record.seq)).toEqual(order.records.map((_, i) => i + 1));
  });

  it("ends a run while the platform is dead and tells it later", async () => {
    const order = await host.launch(
      orderSpec(["sh", "-c", "echo start; sleep 0.5; mkdir outputs; echo data > outputs/f; echo done; exit 5"]),
    );
    await until(() => order.log.includes("start"), "it runs");
    await host.intake.stop();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await host.intake.start();
    await until(() => order.ended, "it ends");
    expect(order.exit?.code).toBe(5);
    expect(order.of("output")).toMatchObject([{ name: "outputs.tar" }]);
  });

  it("keeps running and keeps its memory small when intake does not acknowledge", async () => {
    host.intake.silent = true;
    const order = await host.launch(orderSpec(["sh", "-c", "head -c 40000000 /dev/zero | tr '\\0' x; echo; echo end"]));
    const path = join(host.folder, "h", "orders", order.spec.orderId, "spool.ndjson");
    const spool = () => readFileSync(path);
    await until(
      () => order.socket !== null && existsSync(path) && spool().includes('"type":"exit"'),
      "the guest ends though nobody listens",
    );
    const status = readFileSync(`/proc/${host.pid}/status`, "utf8");
    expect(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1])).toBeLessThan(400_000);
    host.intake.silent = false;
    await host.intake.stop();
    await host.intake.start();
    await until(() => order.ended, "all of it arrives");
    expect(order.log.length).toBe(40_000_005);
  });

  it("beats until everything is acknowledged, also when nothing of the guest is left", async () => {
    host.intake.silent = true;
    const order = await host.launch(orderSpec(["true"]));
    const path = join(host.folder, "h", "orders", order.spec.orderId, "spool.ndjson");
    await until(() => existsSync(path) && readFileSync(path).includes('"type":"end"'), "its end is spooled");
    const atEnd = order.beats;
    await until(() => order.beats >= atEnd + 2, "it beats on");
    host.intake.silent = false;
    await host.intake.stop();
    await host.intake.start();
    await until(() => order.ended, "all of it arrives");
  });

  it("lets go of a folder that was removed, so that the next agent of the same path starts afresh", async () => {
    const marker = `folder-removed-${process.pid}`;
    const order = await host.launch(orderSpec(["sh", "-c", `echo begun; sleep 100 # ${marker}`]));
    await until(() => order.log.includes("begun"), "it runs");
    const before = host.pid;
    rmSync(join(host.folder, "h"), { recursive: true });
    await host.attach();
    expect(host.pid).not.toBe(before);
    expect(processesWith(marker)).toEqual([]);
    expect((await host.run(["echo", "anew"])).log.toString()).toBe("anew\n");
  });

  it("ends with a folder that was removed although nobody asks for another agent", async () => {
    const order = await host.launch(orderSpec(["sh", "-c", "echo begun; sleep 100"]));
    await until(() => order.log.includes("begun"), "it runs");
    const isAlive = () => existsSync(`/proc/${host.pid}`);
    rmSync(join(host.folder, "h"), { recursive: true });
    await until(() => !isAlive(), "the agent is gone");
    await host.attach();
    expect((await host.run(["echo", "anew"])).log.toString()).toBe("anew\n");
  });

  it("takes its guests along when it is killed, and its next life says so", async () => {
    const marker = `dies-with-host-${process.pid}`;
    const order = await host.launch(
      orderSpec([
        "sh",
        "-c",
        `echo begun; setsid sh -c 'trap "" TERM HUP; sleep 100 # ${marker}' & sleep 100 # ${marker}`,
      ]),
    );
    await until(() => order.log.includes("begun") && processesWith(marker).length > 0, "it runs");
    await host.killAgent();
    await until(() => processesWith(marker).length === 0, "no process of the guest is left");
    await host.attach();
    await until(() => order.ended, "the next life reports");
    expect(order.exit).toMatchObject({ code: null, signal: null, killedBy: "host_shutdown", startFailure: null });
    expect(order.log.toString()).toBe("begun\n");
    await until(() => readdirSync(join(host.folder, "h", "orders")).length === 0, "its files are removed");
    expect((await host.client.ask({ op: "observe", orderId: order.spec.orderId })).state).toBe("gone");
    const after = await host.run(["echo", "works again"]);
    expect(after.log.toString()).toBe("works again\n");
  });

  it("reads a spool whose last line was cut off by the crash", async () => {
    const order = await host.launch(orderSpec(["sh", "-c", "echo begun; sleep 100"]));
    await until(() => order.log.includes("begun"), "it runs");
    await host.intake.stop();
    await host.killAgent();
    const path = join(host.folder, "h", "orders", order.spec.orderId, "spool.ndjson");
    writeFileSync(
      path,
      Buffer.concat([readFileSync(path), Buffer.from('{"seq":4,"at":"2026-01-01T00:00:00.000Z","type":"log","off')]),
    );
    await host.intake.start();
    await host.attach();
    await until(() => order.ended, "the next life reports");
    expect(order.records.map((record) => record.type)).toEqual(["phase", "phase", "log", "exit", "end"]);
    expect(order.of("end")[0]?.logBytes).toBe(6);
  });

  it.each([
    ["was killed", () => host.killAgent()],
    ["was told to go", () => host.stopAgent()],
  ])("collects the outputs of a run that ended just before the host agent %s", async (_, lose) => {
    const order = await host.launch(orderSpec(["sh", "-c", "mkdir outputs; echo data > outputs/f; sleep 1; exit 0"]));
    await until(() => order.of("phase").length === 2, "it runs");
    await host.intake.stop();
    const spool = join(host.folder, "h", "orders", order.spec.orderId, "spool.ndjson");
    await until(() => readFileSync(spool).includes('"type":"exit"'), "it exits");
    await lose();
    await host.intake.start();
    await host.attach();
    await until(() => order.ended, "the next life reports");
    expect(order.exit).toMatchObject({ code: 0, killedBy: null });
    expect(order.of("output")).toMatchObject([{ name: "outputs.tar" }]);
  });

  it("kills the guest and drops everything when its session is fenced", async () => {
    const marker = `fenced-${process.pid}`;
    const order = await host.launch(
      orderSpec(["sh", "-c", `echo begun; while :; do echo more; sleep 0.05; done # ${marker}`]),
    );
    await until(() => order.log.includes("begun"), "it runs");
    order.fenced = true;
    await until(() => processesWith(marker).length === 0, "the guest is gone");
    await until(() => readdirSync(join(host.folder, "h", "orders")).length === 0, "its spool is dropped");
    expect(order.ended).toBe(false);
    expect((await host.client.ask({ op: "observe", orderId: order.spec.orderId })).state).toBe("gone");
  });

  it("forgets an order whose token intake does not take", async () => {
    const spec = orderSpec(["true"]);
    host.intake.order(spec);
    await host.client.ask({ op: "launch", orderId: spec.orderId, token: "wrong", intakeUrl: host.intake.url });
    await until(
      async () => (await host.client.ask({ op: "observe", orderId: spec.orderId })).state === "gone",
      "it is gone",
    );
  });

  it("ends guests at the deadline, at the end of funding and at the end of the lease, whichever is first", async () => {
    const marker = `allowed-${process.pid}`;
    const command = ["sh", "-c", `trap '' TERM; sleep 100 & sleep 100 # ${marker}`];
    const start = (allowance: Partial<{ leaseMs: number; fundedRunMs: number; deadlineMs: number }>) => {
      const spec = orderSpec(command);
      const order = host.intake.order(spec);
      order.allowance = { ...order.allowance, ...allowance };
      return host.client
        .ask({ op: "launch", orderId: spec.orderId, token: order.token, intakeUrl: host.intake.url })
        .then(() => order);
    };
    const deadline = await start({ deadlineMs: 4_000, fundedRunMs: 60_000 });
    const funding = await start({ deadlineMs: 60_000, fundedRunMs: 1_500 });
    const lease = await start({ leaseMs: 4_800, fundedRunMs: 60_000 });
    await until(() => [deadline, funding, lease].every((order) => order.ended), "all end");
    expect(deadline.exit).toMatchObject({ code: null, signal: "SIGKILL", killedBy: "deadline" });
    expect(funding.exit?.killedBy).toBe("funding");
    expect(funding.exit?.ranMs).toBeLessThanOrEqual(1_500);
    expect(lease.exit?.killedBy).toBe("lease");
    expect(processesWith(marker)).toEqual([]);
  });
});
