import { setTimeout as sleep } from "node:timers/promises";
import { readPidFile } from "../../infra/db/embedded/pid-file.ts";
import { postgresFolder } from "../../infra/db/embedded/place.ts";
import { mainProcess } from "../support/inspected.ts";
import type { Platform } from "../support/platform.ts";
import type { PlatformClient } from "../support/platform-client.ts";
import { kill, killAll, type Living, processesWith, withDescendants } from "../support/process-table.ts";
import { until } from "../support/until.ts";

export const VICTIMS = ["platform", "starting platform", "postgres", "guest", "host agent", "everything"] as const;
export type PlatformVictim = (typeof VICTIMS)[number];

/** Something that is about to be killed with `kill -9`, and how the platform is back afterwards. */
export interface Victim {
  /** Kills it now; takes no time, so that the moment is the one that was waited for. */
  strike(): void;
  /** Starts again what nobody else starts; resolves when the platform is ready. */
  recover(): Promise<void>;
}

/** Looks for the victim while it lives. `mark` is a word of the guests that may be hit. */
export function aimAt(
  name: PlatformVictim,
  platform: Platform,
  mark: string,
  random: (below: number) => number,
): Victim {
  const ready = () => isReady(platform.admin);
  const restart = async () => {
    await platform.kill(); // it is dead: waits for its exit to be noticed
    await sleep(random(800));
    await platform.start();
  };
  switch (name) {
    case "platform":
      return killed([mainProcess(platform)], restart);
    case "starting platform":
      return killed([mainProcess(platform)], async () => {
        await platform.kill();
        const started = platform.start().catch(() => {}); // it is killed before it can
        await sleep(random(1_500));
        await platform.kill();
        await started;
        await platform.start();
      });
    case "postgres": {
      const { pid } = readPidFile(postgresFolder(platform.dataDir))!;
      return { strike: () => void kill(pid, "SIGKILL"), recover: () => restarted(platform, pid).then(ready) };
    }
    case "guest":
      return guestVictim(mark, random, ready);
    case "host agent":
      return killed([platform.hostAgent()], ready);
    case "everything":
      return {
        strike: () => killAll(platform.processes()),
        recover: async () => {
          await platform.killEverything(); // what was forked while the others were killed
          await platform.start();
        },
      };
  }
}

function killed(processes: readonly Living[], recover: () => Promise<void>): Victim {
  return { strike: () => killAll(processes), recover };
}

/** One process of some guest, with all below it. */
export function guestVictim(mark: string, random: (below: number) => number, ready: () => Promise<void>): Victim {
  return { strike: () => killAll(someOf(ofGuests(mark), random)), recover: ready };
}

/** What a guest dies with: the sandbox, its first process, the command. A shell outlives what it has started, and says so in the log. */
function ofGuests(mark: string): Living[] {
  const found = processesWith(mark);
  const shells = new Set(found.filter(({ commandLine }) => /^(\S*\/)?sh /.test(commandLine)).map(({ pid }) => pid));
  return found.filter(({ parent }) => !shells.has(parent));
}

/** One process and all below it. */
function someOf(processes: readonly Living[], random: (below: number) => number): Living[] {
  const one = processes[random(processes.length || 1)];
  return one ? withDescendants([one]) : [];
}

async function restarted(platform: Platform, killedPid: number): Promise<void> {
  await until("PostgreSQL is back", () => {
    const server = readPidFile(postgresFolder(platform.dataDir));
    return server?.ready && server.pid !== killedPid;
  });
}

/** Waits until the platform says that it is ready. */
export async function isReady(admin: PlatformClient): Promise<void> {
  await until(
    "the platform is ready again",
    async () => (await admin.send("GET", "/readyz").catch(() => null))?.status === 200, // cut off with the victim
    { timeoutMs: 60_000, everyMs: 100 },
  );
}
