import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HostClient } from "../../runner/host/client.ts";
import { orderSpec, stopHostAgent, until } from "../../runner/testing/host-fixture.ts";
import { IntakeDouble } from "../../runner/testing/intake-double.ts";
import { DEVICE_MEMORY_GB, familyOf, parseAccelerators } from "./accelerators.ts";
import { LocalDriver, type LocalDriverSettings } from "./local-driver.ts";
import { localOffers } from "./local-offers.ts";
import { parseNvidiaSmi } from "./nvidia.ts";

describe("parseAccelerators", () => {
  it("reads families and counts, one where none is given", () => {
    expect(parseAccelerators("H100:2, rtx-4090")).toEqual([
      { family: "H100", count: 2, deviceMemoryGb: 80 },
      { family: "RTX 4090", count: 1, deviceMemoryGb: 24 },
    ]);
    expect(parseAccelerators(" ")).toEqual([]);
  });

  it("names the part that is wrong and what would be right", () => {
    expect(() => parseAccelerators("H100:2,Z9")).toThrow(/"Z9" is no known family; known are A100, H100/);
    for (const count of ["0", "-1", "1.5", "65", "x", ""])
      expect(() => parseAccelerators(`H100:${count}`)).toThrow(/whole number from 1 to 64/);
    expect(() => parseAccelerators("H100:2:3")).toThrow("must be FAMILY:COUNT");
    expect(() => parseAccelerators("H100,h-100:2")).toThrow("names H100 twice");
  });

  it("knows a family however it is spelled", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.keys(DEVICE_MEMORY_GB)),
        fc.constantFrom("", " ", "-", "_"),
        fc.boolean(),
        fc.boolean(),
        (family, separator, lower, vendor) => {
          const spelled = `${vendor ? "NVIDIA " : ""}${family.replaceAll(" ", separator)}`;
          expect(familyOf(lower ? spelled.toLowerCase() : spelled)).toBe(family);
        },
      ),
    );
  });
});

describe("parseNvidiaSmi", () => {
  it("reads devices with the driver's long names", () => {
    const csv =
      "NVIDIA H100 80GB HBM3, 81559\nNVIDIA GeForce RTX 4090, 24564\nTesla T4, 15360\nNVIDIA A100-SXM4-80GB, 81920\nNVIDIA Unheard 1, 1024\n";
    expect(parseNvidiaSmi(csv)).toEqual([
      { family: "H100", memoryGb: 80 },
      { family: "RTX 4090", memoryGb: 24 },
      { family: "T4", memoryGb: 15 },
      { family: "A100", memoryGb: 80 },
      { family: "NVIDIA Unheard 1", memoryGb: 1 },
    ]);
  });
});

describe("localOffers", () => {
  const machine = { id: "m1", cores: 4, memoryMb: 10_000, diskFreeBytes: 50 * 1024 ** 3 };
  const settings = { region: "local", rateMicrosPerHour: 100_000n, declared: [], installed: [], isolated: true };

  it("offer the processor with 16 slots a core and most of the memory", () => {
    expect(localOffers(machine, settings)).toMatchObject([
      {
        ...{
          sku: "local-cpu",
          computeClass: "vm",
          accelerator: null,
          gpuCount: 0,
          simulated: false,
          rateMicrosPerHour: 100_000n,
        },
        ...{ note: "image not pulled: host userland", vcpus: 4, diskGb: 50 },
        capacity: { key: "m1", cpuMillis: 6_400, memoryMb: 8_000, gpus: 0, slots: 64 },
      },
    ]);
  });

  it("offer declared devices as simulated ones, in the usual counts up to their number", () => {
    const offers = localOffers(machine, { ...settings, declared: parseAccelerators("H100:5,RTX 4090") });
    expect(offers.map((offer) => [offer.sku, offer.gpuCount, offer.simulated])).toEqual([
      ["local-cpu", 0, false],
      ["sim-h100-1x", 1, true],
      ["sim-h100-2x", 2, true],
      ["sim-h100-4x", 4, true],
      ["sim-rtx4090-1x", 1, true],
    ]);
    expect(new Set(offers.map((offer) => offer.capacity)).size).toBe(1);
    expect(offers[0]?.capacity.gpus).toBe(6);
    expect(offers[1]?.note).toContain("simulated");
  });

  it("offer installed devices under another name than simulated ones", () => {
    const offers = localOffers(machine, {
      ...settings,
      installed: [
        { family: "L4", memoryGb: 24 },
        { family: "L4", memoryGb: 24 },
      ],
    });
    expect(
      offers.slice(1).map((offer) => [offer.sku, offer.accelerator, offer.simulated, offer.deviceMemoryGb]),
    ).toEqual([
      ["local-l4-1x", "L4", false, 24],
      ["local-l4-2x", "L4", false, 24],
    ]);
  });
});

describe("LocalDriver", () => {
  const folder = mkdtempSync("/var/tmp/nodus-driver-test-");
  const home = join(folder, "h");
  const intake = new IntakeDouble();
  const signal = () => AbortSignal.timeout(20_000);
  let settings: LocalDriverSettings;
  let driver: LocalDriver;
  const launchOf = (orderId: string, token: string) => ({
    orderId,
    sku: "local-cpu",
    region: "local",
    token,
    intakeUrl: intake.url,
    cpuMillis: 100,
    memoryMb: 64,
    gpuCount: 0,
  });

  beforeAll(async () => {
    chmodSync(folder, 0o711);
    await intake.start();
    settings = {
      ...{
        host: { folder: home, allowUnisolated: false, version: "test", idleExitMs: 60_000 },
        intakeUrl: intake.url,
        machineId: "m1",
      },
      ...{
        region: "local",
        rateMicrosPerHour: 100_000n,
        declaredAccelerators: parseAccelerators("H100:2"),
        useInstalledGpus: true,
      },
    };
    driver = new LocalDriver(settings);
  });
  afterAll(async () => {
    await driver.close();
    await stopHostAgent(home);
    await intake.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("replaces an agent of another build that has no orders, and leaves one of its own build alone", async () => {
    const pidOf = async () => {
      const client = await HostClient.dial(home);
      const { pid, version } = await client.ask({ op: "hello", intakeUrl: intake.url });
      client.close();
      return { pid, version };
    };
    await driver.offers(signal());
    const first = await pidOf();
    const same = new LocalDriver(settings);
    await same.offers(signal());
    expect(await pidOf()).toEqual(first);
    const newer = new LocalDriver({ ...settings, host: { ...settings.host, version: "newer" } });
    await newer.offers(signal());
    const second = await pidOf();
    expect(second.version).toBe("newer");
    expect(second.pid).not.toBe(first.pid);
    await Promise.all([same.close(), newer.close()]);
    driver = new LocalDriver(settings);
    await driver.offers(signal());
    expect((await pidOf()).version).toBe("test");
  });

  it("starts one host agent for all who ask at once, in a process session of its own", async () => {
    const drivers = [driver, ...Array.from({ length: 4 }, () => new LocalDriver(settings))];
    await Promise.all(drivers.map((one) => one.offers(signal())));
    const pids = await Promise.all(
      drivers.map(async () => {
        const client = await HostClient.dial(home);
        const { pid } = await client.ask({ op: "hello", intakeUrl: "" });
        client.close();
        return pid;
      }),
    );
    expect(new Set(pids).size).toBe(1);
    const { execFileSync } = await import("node:child_process");
    expect(Number(execFileSync("ps", ["-o", "sid=", "-p", String(pids[0])], { encoding: "utf8" }))).toBe(pids[0]);
    await Promise.all(drivers.slice(1).map((one) => one.close()));
  });

  it("offers this machine, isolated", async () => {
    const offers = await driver.offers(signal());
    expect(offers.map((offer) => offer.sku)).toEqual(["local-cpu", "sim-h100-1x", "sim-h100-2x"]);
    expect(offers.every((offer) => offer.isolated)).toBe(true);
  });

  it("launches once, observes, terminates and remembers", async () => {
    const spec = orderSpec(["sleep", "100"]);
    const order = intake.order(spec);
    expect(await driver.observe(spec.orderId, signal())).toMatchObject({ state: "never_seen" });
    expect(await driver.launch(launchOf(spec.orderId, order.token), signal())).toEqual({ outcome: "accepted" });
    expect(await driver.launch(launchOf(spec.orderId, order.token), signal())).toEqual({ outcome: "accepted" });
    await until(async () => (await driver.observe(spec.orderId, signal())).state === "running", "it runs");
    expect(await driver.list(signal())).toEqual([spec.orderId]);
    await until(async () => (await driver.terminate(spec.orderId, signal())) === "gone", "it is gone");
    expect(await driver.observe(spec.orderId, signal())).toEqual({ state: "gone" });
    expect(await driver.list(signal())).toEqual([]);
    expect(await driver.launch(launchOf(spec.orderId, order.token), signal())).toMatchObject({
      outcome: "refused",
      reason: "bad_order",
    });
    expect(order.of("phase")).toHaveLength(2);
  });

  it("refuses to launch what was terminated before it came", async () => {
    expect(await driver.terminate("ord_early", signal())).toBe("gone");
    expect(await driver.launch(launchOf("ord_early", "t"), signal())).toMatchObject({ outcome: "refused" });
  });

  it("says unknown when patience ends first", async () => {
    const other = new LocalDriver(settings);
    expect(await other.observe("ord_x", AbortSignal.abort(new Error("no time")))).toEqual({
      state: "unknown",
      message: "no time",
    });
    expect(await other.launch(launchOf("ord_x", "t"), AbortSignal.abort(new Error("no time")))).toEqual({
      outcome: "unknown",
      message: "no time",
    });
    expect(await other.terminate("ord_x", AbortSignal.abort())).toBe("unknown");
    expect(await other.list(AbortSignal.abort())).toBeNull();
    await other.close();
  });

  it("finds a new host agent after the old one was killed", async () => {
    const client = await HostClient.dial(home);
    const { pid } = await client.ask({ op: "hello", intakeUrl: "" });
    process.kill(pid, "SIGKILL");
    await until(() => client.closed, "it is gone");
    // The driver's own connection may learn of it a moment later: until then the answer is not known.
    const observed = () => driver.observe("ord_early", signal());
    await until(async () => (await observed()).state === "gone", "a new one knows what the old one did");
    expect(await driver.offers(signal())).toHaveLength(3);
  });
});
