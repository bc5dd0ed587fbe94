import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cgroupV1 } from "./cgroup-v1.ts";
import { cgroupV2 } from "./cgroup-v2.ts";
import type { LimitGroups } from "./cgroups.ts";

const LIMITS = { memoryBytes: 1_000_000, cpuMillis: 500, processes: 20 };

/** Folders with the kernel's file names; what a real kernel would do on a write is not played. */
class FakeRoot {
  readonly path = mkdtempSync(join(tmpdir(), "cgroup-"));

  write(file: string, text: string): void {
    mkdirSync(join(this.path, file, ".."), { recursive: true });
    writeFileSync(join(this.path, file), text);
  }

  read(file: string): string {
    return readFileSync(join(this.path, file), "utf8");
  }
}

describe("control groups v2", () => {
  let root: FakeRoot;
  beforeEach(() => {
    root = new FakeRoot();
    root.write("cgroup.controllers", "cpu io memory pids\n");
    root.write("user.slice/cgroup.controllers", "cpu memory pids\n");
    root.write("user.slice/cgroup.subtree_control", "memory pids cpu\n");
  });
  afterEach(() => rmSync(root.path, { recursive: true, force: true }));
  const groups = () => cgroupV2("nodus-x", "0::/user.slice\n", 4711, root.path) as LimitGroups;

  it("are made below the agent's own group, with hard limits and a weight", () => {
    groups().create("ord_1", LIMITS).place(99);
    const base = "user.slice/nodus-x/ord_1";
    expect(root.read(`${base}/memory.max`)).toBe("1000000");
    expect(root.read(`${base}/memory.swap.max`)).toBe("0");
    expect(root.read(`${base}/pids.max`)).toBe("20");
    expect(root.read(`${base}/cpu.weight`)).toBe("50");
    expect(root.read(`${base}/cgroup.procs`)).toBe("99");
    expect(root.read("user.slice/nodus-x/cgroup.subtree_control")).toBe("+memory +pids +cpu");
    expect(existsSync(join(root.path, "user.slice/nodus-x-host"))).toBe(false);
  });

  it("go before all others for as long as they are told to", () => {
    const group = groups().create("ord_1", LIMITS);
    group.weigh("first");
    expect(root.read("user.slice/nodus-x/ord_1/cpu.weight")).toBe("10000");
    group.weigh("as limited");
    expect(root.read("user.slice/nodus-x/ord_1/cpu.weight")).toBe("50");
  });

  it("tell what the kernel counted", () => {
    const group = groups().create("ord_1", LIMITS);
    root.write("user.slice/nodus-x/ord_1/memory.events", "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 0\n");
    root.write("user.slice/nodus-x/ord_1/memory.current", "12345\n");
    root.write("user.slice/nodus-x/ord_1/cpu.stat", "usage_usec 1500999\nuser_usec 1\n");
    root.write("user.slice/nodus-x/ord_1/cgroup.procs", "5\n6\n");
    expect([group.outOfMemoryKills(), group.memoryBytes(), group.cpuMs(), group.pids()]).toEqual([
      3,
      12_345,
      1_500,
      [5, 6],
    ]);
  });

  it("are killed by the kernel at once, or process by process where it cannot", () => {
    const group = groups().create("ord_1", LIMITS);
    const processes = `user.slice/nodus-x/ord_1`;
    const victim = spawn("sleep", ["60"]);
    root.write(`${processes}/cgroup.procs`, `${victim.pid}\n`);
    root.write(`${processes}/cgroup.kill`, "");
    group.kill();
    expect([root.read(`${processes}/cgroup.kill`), victim.kill(0)]).toEqual(["1", true]);
    rmSync(join(root.path, processes, "cgroup.kill"));
    group.kill();
    return expect(once(victim, "exit")).resolves.toEqual([null, "SIGKILL"]);
  });

  it("are made anew for the next guest where somebody swept the agent's own away", () => {
    const found = groups();
    rmSync(join(root.path, "user.slice/nodus-x"), { recursive: true });
    found.create("ord_1", LIMITS);
    expect(root.read("user.slice/nodus-x/cgroup.subtree_control")).toBe("+memory +pids +cpu");
  });

  it("are null in what the kernel does not tell, never zero", () => {
    const group = groups().create("ord_1", LIMITS);
    expect([group.memoryBytes(), group.cpuMs()]).toEqual([null, null]);
  });

  it("are found again as leftovers of an earlier life", () => {
    groups().create("ord_1", LIMITS);
    groups().create("ord_2", LIMITS);
    expect(groups().leftovers()).toHaveLength(2);
  });

  it("move the agent into a leaf when its own processes are in the way", () => {
    rmSync(join(root.path, "user.slice/cgroup.subtree_control"));
    mkdirSync(join(root.path, "user.slice/cgroup.subtree_control")); // a write fails, as with EBUSY
    const found = cgroupV2("nodus-x", "0::/user.slice\n", 4711, root.path);
    expect(root.read("user.slice/nodus-x-host/cgroup.procs")).toBe("4711");
    expect(found).toMatchObject({ kind: "none", reason: expect.stringContaining("/user.slice") });
  });

  it("are refused with the reason where a controller is not delegated or nothing is mounted", () => {
    root.write("user.slice/cgroup.controllers", "cpu\n");
    expect(groups()).toEqual({
      kind: "none",
      reason: "control group v2 does not delegate memory and pids to /user.slice",
    });
    expect(cgroupV2("nodus-x", "4:memory:/x\n", 1, root.path)).toMatchObject({ kind: "none" });
  });
});

describe("control groups v1", () => {
  let root: FakeRoot;
  beforeEach(() => {
    root = new FakeRoot();
    for (const controller of ["memory", "pids", "cpu", "cpuacct"])
      mkdirSync(join(root.path, controller, "own"), { recursive: true });
  });
  afterEach(() => rmSync(root.path, { recursive: true, force: true }));
  const own = "4:memory:/own\n8:pids:/own\n2:cpu,cpuacct:/elsewhere\n0::/\n";

  it("are made in each hierarchy, below the own group or below the mount where that is not visible", () => {
    const groups = cgroupV1("nodus-x", own, root.path) as LimitGroups;
    groups.create("ord_1", LIMITS).place(7);
    expect(root.read("memory/own/nodus-x/ord_1/memory.limit_in_bytes")).toBe("1000000");
    expect(root.read("pids/own/nodus-x/ord_1/pids.max")).toBe("20");
    expect(root.read("cpu/nodus-x/ord_1/cpu.shares")).toBe("512");
    for (const home of ["memory/own", "pids/own", "cpu", "cpuacct"])
      expect(root.read(`${home}/nodus-x/ord_1/cgroup.procs`)).toBe("7");
  });

  it("go before all others for as long as they are told to", () => {
    const group = (cgroupV1("nodus-x", own, root.path) as LimitGroups).create("ord_1", LIMITS);
    group.weigh("first");
    expect(root.read("cpu/nodus-x/ord_1/cpu.shares")).toBe("262144");
    group.weigh("as limited");
    expect(root.read("cpu/nodus-x/ord_1/cpu.shares")).toBe("512");
  });

  it("are killed process by process", async () => {
    const group = (cgroupV1("nodus-x", own, root.path) as LimitGroups).create("ord_1", LIMITS);
    const victim = spawn("sleep", ["60"]);
    root.write("pids/own/nodus-x/ord_1/cgroup.procs", `${victim.pid}\n`);
    group.kill();
    expect(await once(victim, "exit")).toEqual([null, "SIGKILL"]);
  });

  it("are refused without memory or pids", () => {
    expect(cgroupV1("nodus-x", "4:memory:/own\n", root.path)).toMatchObject({
      kind: "none",
      reason: expect.stringContaining("pids"),
    });
  });
});
