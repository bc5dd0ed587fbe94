import { chmodSync, chownSync, mkdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../kernel/clock.ts";
import { SHARED_FOLDER } from "../../kernel/shared-folder.ts";
import { Turnstile } from "../../kernel/turnstile.ts";
import { EgressProxy, hostNetwork } from "../egress/proxy.ts";
import { startBubblewrapGuest } from "../guest/bubblewrap-guest.ts";
import type { Guest, GuestRuntime } from "../guest/guest.ts";
import { startUnisolatedGuest } from "../guest/unisolated-guest.ts";
import { sweepAbandonedGroups } from "../isolation/abandoned-groups.ts";
import { GUEST_PATHS } from "../isolation/bubblewrap.ts";
import { cgroupV1 } from "../isolation/cgroup-v1.ts";
import { cgroupV2 } from "../isolation/cgroup-v2.ts";
import type { LimitGroup, LimitGroups } from "../isolation/cgroups.ts";
import { OutputPipes } from "../isolation/fifo.ts";
import { probeBubblewrap } from "../isolation/probe.ts";
import type { IsolationReport } from "../protocol.ts";
import { DiskWatch } from "./disk-watch.ts";
import type { GuestHost } from "./execution.ts";
import { GpuPool } from "./gpu-pool.ts";
import { type GuestBinaries, passableByAll, placeGuestBinaries } from "./guest-binaries.ts";
import { commandPaths } from "./guest-environment.ts";
import { UidPool } from "./uid-pool.ts";

export interface GuestHostSettings {
  /** The host agent's folder, absolute. */
  folder: string;
  /** Unique among the host agents of a machine. */
  name: string;
  /** Run commands without isolation where there is none; otherwise orders are refused. */
  allowUnisolated: boolean;
  /** Program name or path of bubblewrap. */
  bubblewrap: string;
}

/** Finds out what this machine can do and prepares what all guests share. */
export async function createGuestHost(settings: GuestHostSettings): Promise<GuestHost> {
  const root = process.getuid?.() === 0;
  const uids = root ? new UidPool(settings.name) : null;
  const binaries = placeGuestBinaries(
    root ? join(SHARED_FOLDER, "guest") : join(settings.folder, "guest"),
    process.execPath,
    process.arch,
  );
  const { groups, why } = findGroups(settings.name);
  const probed = await probeFor(settings, binaries, uids);
  const isolated = probed.works;
  const isolation: IsolationReport = {
    level: isolated ? "bubblewrap" : "none",
    ownUid: uids !== null,
    seccomp: probed.works && probed.seccomp,
    limits: groups?.kind ?? "rlimits",
    detail: [
      isolated ? sentence(probed.seccomp) : probed.reason,
      root ? null : "guests share the host agent's user",
      why,
    ]
      .filter(Boolean)
      .join("; "),
  };
  const runtime: GuestRuntime = {
    bubblewrap: settings.bubblewrap,
    pipes: new OutputPipes(join(settings.folder, "pipes")),
    ...binaries,
    seccompFile: isolation.seccomp ? binaries.seccompFile : null,
    groups,
    readOnly: [],
  };
  const network = hostNetwork();
  const disk = new DiskWatch();
  // A start is short and busy: a few at a time are done sooner than all at once.
  const starts = new Turnstile(Math.max(4, 2 * availableParallelism()));
  return {
    clock: systemClock,
    isolation,
    refusal:
      isolated || settings.allowUnisolated ? null : `guests can't be isolated on this machine: ${isolation.detail}`,
    uids,
    disk,
    paths: (folder) => commandPaths(isolated ? GUEST_PATHS.workspace : folder.workspace),
    start: (plan, announce, signal) =>
      inTurn(starts, signal, () =>
        isolated ? startBubblewrapGuest(plan, runtime, announce) : startUnisolatedGuest(plan, runtime),
      ),
    proxy: (run, policy, denied) => (isolated ? EgressProxy.listen(run, policy, network, denied) : null),
    gpus: new GpuPool(),
    close: async () => {
      disk.close();
      await groups?.close();
    },
  };
}

/** Gives the guest out as soon as it exists, and the turn back once its command runs. */
function inTurn(starts: Turnstile, signal: AbortSignal, start: () => Promise<Guest>): Promise<Guest> {
  return new Promise((resolve, reject) => {
    const turn = async () => {
      signal.throwIfAborted();
      const guest = await start();
      resolve(guest);
      await guest.started;
    };
    starts.pass(turn).catch(reject);
  });
}

function sentence(seccomp: boolean): string {
  return seccomp ? "namespaces and a system call filter" : "namespaces, without a system call filter";
}

async function probeFor({ folder, bubblewrap }: GuestHostSettings, binaries: GuestBinaries, uids: UidPool | null) {
  if (uids && !passableByAll(folder))
    return { works: false as const, reason: `${folder} lies in a folder that guests' users can't pass through` };
  const trial = join(folder, "probe");
  const plan = {
    run: join(trial, "run"),
    workspace: join(trial, "workspace"),
    ...binaries,
    tmpBytes: 1024 * 1024,
    readOnly: [],
    devices: [],
  };
  for (const path of [trial, plan.run, plan.workspace]) {
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o755); // whatever this process's umask is
  }
  if (uids) chownSync(plan.workspace, uids.probe, uids.probe);
  return probeBubblewrap({ bubblewrap, plan, seccompFile: binaries.seccompFile, uid: uids?.probe ?? null });
}

/** Control groups if the kernel and this user's rights give any; otherwise why not. */
function findGroups(name: string): { groups: LimitGroups | null; why: string | null } {
  const own = readFileSync("/proc/self/cgroup", "utf8");
  const reasons: string[] = [];
  for (const found of [cgroupV2(`nodus-${name}`, own, process.pid), cgroupV1(`nodus-${name}`, own)]) {
    if (found.kind === "none") reasons.push(found.reason);
    else {
      const leftovers = found.leftovers();
      for (const group of leftovers) void clear(group);
      sweepAbandonedGroups(found.homes);
      return { groups: found, why: null };
    }
  }
  return { groups: null, why: `memory is watched, not limited by the kernel (${reasons.join("; ")})` };
}

/** Ends what a guest of an earlier life left in its group. */
async function clear(group: LimitGroup): Promise<void> {
  for (let attempt = 0; attempt < 10; attempt++) {
    group.kill();
    group.weigh("first");
    if (await group.remove()) return;
  }
}
