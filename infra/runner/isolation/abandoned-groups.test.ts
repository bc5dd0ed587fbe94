import { spawn } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { takeLock } from "../host/lock.ts";
import { HostFixture, until } from "../testing/host-fixture.ts";
import { hostAgentName, livingHostAgents, sweepAbandonedGroups } from "./abandoned-groups.ts";

const [DEAD, ALIVE] = [hostAgentName("/dead"), hostAgentName("/alive")];

describe("control groups of host agents that are gone", () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "homes-"));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));
  const make = (...groups: string[]) => {
    for (const group of groups) mkdirSync(join(home, group), { recursive: true });
  };
  const sweep = () => sweepAbandonedGroups([home, join(home, "no-such-home")], () => new Set([ALIVE]));

  it("are removed with their guests' empty ones; a living agent's and anybody else's stay", () => {
    make(`nodus-${DEAD}/ord_1`, `nodus-${DEAD}-host`, `nodus-${ALIVE}/ord_2`, "nodus-of-others", "system.slice");
    sweep();
    expect(readdirSync(home).sort()).toEqual([`nodus-${ALIVE}`, "nodus-of-others", "system.slice"].sort());
    expect(readdirSync(join(home, `nodus-${ALIVE}`))).toEqual(["ord_2"]);
  });

  it("stay while something is in them", () => {
    make(`nodus-${DEAD}/ord_1`, `nodus-${DEAD}/ord_2`);
    writeFileSync(join(home, `nodus-${DEAD}`, "ord_2", "busy"), "");
    sweep();
    expect(readdirSync(join(home, `nodus-${DEAD}`))).toEqual(["ord_2"]);
  });
});

describe("the name of a host agent", () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "names-"));
    mkdirSync(join(home, "real"));
    symlinkSync(join(home, "real"), join(home, "link"));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  it("is the same by whichever link one comes to its folder", () => {
    expect(hostAgentName(join(home, "link"))).toBe(hostAgentName(join(home, "real")));
    expect(hostAgentName(join(home, "other"))).not.toBe(hostAgentName(join(home, "real")));
  });

  it("is told by the lock of a folder that was named by a link", async () => {
    const name = hostAgentName(join(home, "link"));
    expect(livingHostAgents().has(name)).toBe(false);
    const servers = vi.spyOn(net, "createServer");
    try {
      expect(await takeLock(join(home, "link"))).toBe(true);
      expect(livingHostAgents().has(name)).toBe(true);
      expect(await takeLock(join(home, "real"))).toBe(false);
    } finally {
      for (const { value } of servers.mock.results) (value as net.Server).close();
      servers.mockRestore();
    }
    expect(livingHostAgents().has(name)).toBe(false);
  });

  it("is told by the command line of an agent whose lock cannot be seen, by link and by what it leads to", async () => {
    const agent = spawn(process.execPath, ["-e", "setTimeout(() => {}, 30_000)", "--", "--folder", join(home, "link")]);
    try {
      await until(() => livingHostAgents().has(hostAgentName(join(home, "real"))), "the agent is seen");
    } finally {
      agent.kill("SIGKILL");
    }
  });

  it("is asked for once in a sweep, after the groups are known, and not at all where there are none", () => {
    const asked: string[][] = [];
    const living = () => {
      asked.push(readdirSync(home));
      return new Set<string>();
    };
    sweepAbandonedGroups([home], living);
    expect(asked).toEqual([]);
    for (const group of [`nodus-${DEAD}`, `nodus-${ALIVE}`]) mkdirSync(join(home, group));
    sweepAbandonedGroups([home], living);
    expect(asked).toEqual([expect.arrayContaining([`nodus-${DEAD}`, `nodus-${ALIVE}`])]);
  });
});

describe("a host agent that starts", () => {
  /** Control groups of the agent of a fixture, in all hierarchies. */
  const groupsOf = (host: HostFixture) => {
    const name = `nodus-${hostAgentName(join(host.folder, "h"))}`;
    return globSync([`/sys/fs/cgroup/${name}`, `/sys/fs/cgroup/*/${name}`, `/sys/fs/cgroup/*/*/*/${name}`]);
  };

  it("sweeps what a killed one has left, and not what another one that lives has", { timeout: 60_000 }, async () => {
    const [killed, living] = await Promise.all([HostFixture.start(), HostFixture.start()]);
    const left = groupsOf(killed);
    const kept = groupsOf(living);
    const lives = ({ folder }: HostFixture) => livingHostAgents().has(hostAgentName(join(folder, "h")));
    expect([killed, living].map(lives)).toEqual([true, true]);
    await killed.killAgent();
    const gone = () => !lives(killed);
    await until(gone, "nobody is taken for the killed agent any more");
    expect(groupsOf(killed)).toEqual(left);
    const next = await HostFixture.start();
    try {
      expect(groupsOf(killed)).toEqual([]);
      expect(groupsOf(living)).toEqual(kept);
      expect((await living.run(["true"])).exit?.code).toBe(0);
    } finally {
      await killed.attach();
      await Promise.all([next, killed, living].map((host) => host.stop()));
    }
  });
});
