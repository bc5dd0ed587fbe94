import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFixture, orderSpec, processesWith, until } from "../testing/host-fixture.ts";
import { IntakeDouble } from "../testing/intake-double.ts";

describe("a host agent and a platform that is not always well", () => {
  let host: HostFixture;
  beforeEach(async () => {
    host = await HostFixture.start();
  });
  afterEach(() => host?.stop());

  it("takes a session up again when a frame of it could not be taken", async () => {
    const order = await host.launch(orderSpec(["sh", "-c", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done"]));
    for (const code of ["retry", "bad_frame"] as const) {
      const before = order.log.length;
      await until(() => order.log.length > before, "it runs");
      order.refuseNext = code;
      await until(() => order.refuseNext === null, "a frame was refused");
    }
    await until(() => order.ended, "it ends");
    expect(order.log.toString()).toBe("1\n2\n3\n4\n5\n6\n");
    expect(order.exit?.code).toBe(0);
    expect(order.refusals).toBe(2);
  });

  it("asks again to open an order that could not be opened just now", async () => {
    const spec = orderSpec(["echo", "late"]);
    const order = host.intake.order(spec);
    order.refuseNext = "retry";
    await host.client.ask({ op: "launch", orderId: spec.orderId, token: order.token, intakeUrl: host.intake.url });
    await until(() => order.ended, "it ends");
    expect(order.log.toString()).toBe("late\n");
  });

  it("opens an order that was launched while the platform was away", async () => {
    const spec = orderSpec(["echo", "patient"]);
    const order = host.intake.order(spec);
    await host.intake.stop();
    await host.client.ask({ op: "launch", orderId: spec.orderId, token: order.token, intakeUrl: host.intake.url });
    expect((await host.client.ask({ op: "observe", orderId: spec.orderId })).state).toBe("starting");
    await host.intake.start();
    await until(() => order.ended, "it ends");
    expect(order.log.toString()).toBe("patient\n");
  });

  it("follows a platform that came back at another address", async () => {
    const order = await host.launch(
      orderSpec(["sh", "-c", "echo before; sleep 1; echo after; mkdir outputs; echo x > outputs/x"]),
    );
    await until(() => order.log.includes("before"), "it runs");
    await host.intake.stop();
    const moved = new IntakeDouble();
    moved.orders.set(order.spec.orderId, order);
    await moved.start();
    try {
      await host.client.ask({ op: "hello", intakeUrl: moved.url });
      await until(() => order.ended, "it ends");
      expect(order.log.toString()).toBe("before\nafter\n");
      expect(order.of("output")).toHaveLength(1);
    } finally {
      await moved.stop();
    }
  });

  it("fetches and stores objects although the platform goes away in the middle of them", async () => {
    host.intake.brokenTransfers = 2;
    const object = host.intake.object("model.bin", Buffer.alloc(3_000_000, "m"), "file");
    const order = await host.launch(
      orderSpec(
        [
          "sh",
          "-c",
          "cat $NODUS_INPUT_model/model.bin | wc -c; mkdir outputs; head -c 3000000 /dev/zero > outputs/x; sleep 1",
        ],
        { inputs: [{ name: "model", object }] },
      ),
    );
    await until(() => order.log.length > 0, "it runs");
    expect(host.intake.brokenTransfers).toBe(0);
    host.intake.brokenTransfers = 2;
    await until(() => order.ended, "it ends");
    expect(order.log.toString()).toBe("3000000\n");
    expect(host.intake.brokenTransfers).toBe(0);
    expect(host.intake.objects.get(order.of("output")[0]!.sha256)?.length).toBeGreaterThan(3_000_000);
  });

  it("lets no guest live past its lease because the machine slept", async () => {
    const marker = `slept-${process.pid}`;
    const spec = orderSpec(["sh", "-c", `echo ready; sleep 100 # ${marker}`]);
    const order = host.intake.order(spec);
    order.allowance = { ...order.allowance, leaseMs: 4_500 };
    await host.client.ask({ op: "launch", orderId: spec.orderId, token: order.token, intakeUrl: host.intake.url });
    await until(() => order.log.includes("ready"), "it runs");
    process.kill(host.pid, "SIGSTOP");
    // An allowance that waits in the socket's buffer must not count as contact once the machine is awake.
    host.intake.want(order, {});
    await sleep(5_000);
    process.kill(host.pid, "SIGCONT");
    await until(() => processesWith(marker).length === 0, "the guest is gone");
    await until(() => order.ended, "it ends");
    expect(order.exit?.killedBy).toBe("lease");
  });

  it("ends an order in whichever state it is when it is terminated", async () => {
    const object = host.intake.object("slow", Buffer.alloc(1_000), "file");
    host.intake.slowObjects = true;
    const orders = [
      orderSpec(["true"], { inputs: [{ name: "slow", object }] }),
      orderSpec(["sleep", "100"]),
      orderSpec(["sh", "-c", "trap '' TERM; sleep 100"]),
      orderSpec(["true"]),
    ];
    const launched = await Promise.all(orders.map((spec) => host.launch(spec)));
    await until(() => launched[1]!.of("phase").length === 2 && launched[3]!.ended, "they are in different states");
    const unopened = orderSpec(["true"]);
    await host.intake.stop();
    await host.client.ask({ op: "launch", orderId: unopened.orderId, token: "t", intakeUrl: host.intake.url });
    for (const { orderId } of [...orders, unopened]) await host.client.ask({ op: "terminate", orderId });
    for (const { orderId } of [...orders, unopened]) {
      await until(async () => (await host.client.ask({ op: "observe", orderId })).state === "gone", "it is gone");
    }
    expect((await host.client.ask({ op: "list" })).orders).toEqual([]);
    await host.intake.start();
    await until(() => launched.every((order) => order.ended), "intake hears of each end");
    expect(launched[0]!.exit).toMatchObject({ code: null, killedBy: "cancel", startFailure: null, ranMs: 0 });
    expect(launched[3]!.exit).toMatchObject({ code: 0, killedBy: null });
    await until(() => readdirSync(join(host.folder, "h", "orders")).length === 0, "no file is left");
  });

  it("runs many orders at once, each to its own end", async () => {
    const orders = await Promise.all(
      Array.from({ length: 40 }, (_, i) => host.launch(orderSpec(["sh", "-c", `echo ${i}; exit ${i}`]))),
    );
    await until(() => orders.every((order) => order.ended), "all end", 60_000);
    expect(orders.map((order) => [order.log.toString(), order.exit?.code])).toEqual(
      orders.map((_, i) => [`${i}\n`, i]),
    );
    expect(orders.map((order) => order.repeats)).toEqual(orders.map(() => 0));
    await until(() => readdirSync(join(host.folder, "h", "orders")).length === 0, "no file is left");
  }, 90_000);

  it("tells in its next life of guests that ended because it was stopped", async () => {
    const order = await host.launch(orderSpec(["sh", "-c", "echo ready; sleep 100"]));
    await until(() => order.log.includes("ready"), "it runs");
    await host.intake.stop();
    await host.stopAgent();
    await host.intake.start();
    await host.attach();
    await until(() => order.ended, "the next life reports");
    expect(order.exit).toMatchObject({ signal: "SIGKILL", killedBy: "host_shutdown" });
    expect(order.exit?.ranMs).toBeGreaterThan(0);
  });
});

describe("a host agent whose umask closes everything", () => {
  it("lets its guests reach what they need all the same", async () => {
    const before = process.umask(0o077);
    const host = await HostFixture.start();
    process.umask(before);
    const object = host.intake.object("data.txt", Buffer.from("data\n"), "file");
    const order = await host.run(["sh", "-c", "cat $NODUS_INPUT_data/data.txt; touch x state/y $TMPDIR/z $HOME/h"], {
      inputs: [{ name: "data", object }],
    });
    expect(order.log.toString()).toBe("data\n");
    expect(order.exit?.code).toBe(0);
    await host.stop();
  });
});

describe("an idle host agent", () => {
  let host: HostFixture | undefined;
  afterEach(() => host?.stop());

  it("ends by itself when there is neither work nor a platform, and not before", async () => {
    host = await HostFixture.start({ idleExitMs: 400 });
    const { client, intake } = host;
    const order = await host.launch(orderSpec(["sleep", "2"]));
    await until(() => order.of("phase").length === 2, "it runs");
    await intake.stop();
    await sleep(800);
    expect((await client.ask({ op: "observe", orderId: order.spec.orderId })).state).toBe("running");
    await until(() => client.closed, "the agent ends by itself");
    await intake.start();
    await host.attach();
    await until(() => order.ended, "the next life tells what the last one could not");
    expect(order.exit?.code).toBe(0);
  });
});
