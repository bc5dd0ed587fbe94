import { globSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFixture, until } from "../testing/host-fixture.ts";
import { hostAgentLives, hostAgentName, sweepAbandonedGroups } from "./abandoned-groups.ts";

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
  const sweep = () => sweepAbandonedGroups([home, join(home, "no-such-home")], (name) => name === ALIVE);

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
    expect([killed, living].map(({ folder }) => hostAgentLives(hostAgentName(join(folder, "h"))))).toEqual([
      true,
      true,
    ]);
    await killed.killAgent();
    const gone = () => !hostAgentLives(hostAgentName(join(killed.folder, "h")));
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
