import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { startDyingBubblewrap } from "../testing/dying-bubblewrap.ts";
import { HostFixture, until } from "../testing/host-fixture.ts";
import { endOrphans } from "./orphans.ts";
import { encodeOwnerMark, newOwnerMark, OWNER_MARK, ownerMarkOf } from "./owner-mark.ts";
import { identifyProcess, isZombie, type ProcessIdentity } from "./processes.ts";

const ENVIRONMENT = { PATH: process.env.PATH! };

/** A process that stands still, as bubblewrap's child does whose parent was killed; it has the mark of another's child. */
async function standingStill(mark: string): Promise<ProcessIdentity> {
  const child = spawn("sleep", ["100"], { env: { ...ENVIRONMENT, [OWNER_MARK]: mark }, stdio: "ignore" });
  await once(child, "spawn");
  return identifyProcess(child.pid!)!;
}

const lives = ({ pid, startTicks }: ProcessIdentity) =>
  identifyProcess(pid)?.startTicks === startTicks && !isZombie(pid);

/** A mark that a child of a process bears that has ended. */
async function markOfTheDead(): Promise<string> {
  const owner = spawn("sleep", ["100"], { stdio: "ignore" });
  await once(owner, "spawn");
  const mark = { ...newOwnerMark(), owner: identifyProcess(owner.pid!)! };
  owner.kill("SIGKILL");
  await once(owner, "exit");
  return encodeOwnerMark(mark);
}

describe("a process that was started by one that is dead", () => {
  it("is ended", async () => {
    const left = await standingStill(await markOfTheDead());
    expect(ownerMarkOf(left.pid)).not.toBeNull();
    await endOrphans();
    await until(() => !lives(left), "it is ended");
  });

  it.each([
    ["lives", async () => encodeOwnerMark(newOwnerMark())],
    [
      "is of another pid namespace, where its number is another's",
      async () => `1.${(await markOfTheDead()).split(".").slice(1).join(".")}`,
    ],
    ["cannot be read from its mark", async () => "whatever"],
  ])("is let be when the other one %s", async (_, markOf) => {
    const other = await standingStill(await markOf());
    await endOrphans();
    await sleep(50);
    expect(lives(other)).toBe(true);
    process.kill(other.pid, "SIGKILL");
    await until(() => !lives(other), "it has gone");
  });

  it("is ended also when the dead one's number was given to another process", async () => {
    const mark = newOwnerMark();
    const owner = { pid: mark.owner.pid, startTicks: String(Number(mark.owner.startTicks) - 1) };
    const left = await standingStill(encodeOwnerMark({ ...mark, owner }));
    await endOrphans();
    await until(() => !lives(left), "it is ended");
  });
});

describe("bubblewrap that dies before it lets its child go on", () => {
  it("leaves nothing to what started it and lives on", async () => {
    const { bubblewrap, child } = startDyingBubblewrap();
    await once(bubblewrap, "close"); // a child that stands still holds the descriptors of its parent
    await until(() => !lives(child), "it is gone");
  });

  it("leaves nothing to the next host agent when what started it was killed as well", async () => {
    const owner = spawn(process.execPath, [fileURLToPath(new URL("../testing/dying-owner.ts", import.meta.url))], {
      env: ENVIRONMENT,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [told] = (await once(owner.stdout, "data")) as [Buffer];
    const child = JSON.parse(String(told)) as ProcessIdentity;
    await once(owner, "exit");
    const host = await HostFixture.start();
    try {
      await until(() => !lives(child), "it is gone", 2_000);
    } finally {
      await host.stop();
    }
  });
});
