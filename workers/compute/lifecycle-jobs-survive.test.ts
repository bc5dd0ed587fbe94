import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import type { Database } from "../../infra/db/database.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { openDiskStore } from "../../infra/objects/disk-store.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import { DONE } from "../../infra/queue/implement-job.ts";
import type { ExitRecord } from "../../infra/runner/protocol.ts";
import { allEntities } from "../../roles/entities.ts";
import { brokenInvariants } from "../../roles/simulation/invariants.ts";
import { openAccount } from "../../subgraphs/compute/account/account.commands.ts";
import { settle } from "../../subgraphs/compute/lifecycle/settlement.commands.ts";
import { confirmGone } from "../../subgraphs/compute/placement/release.commands.ts";
import { assetPins } from "../../subgraphs/data/asset/asset-pins.ts";
import { connectionPins } from "../../subgraphs/data/connection/connection-pins.ts";
import { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";
import { SecretPins } from "../../subgraphs/data/secret/secret-pins.ts";
import { insertPlaced, type Placed, TENANT } from "../../tests/support/compute-fixtures.ts";
import { testDatabase } from "../../tests/support/database.ts";
import {
  type JobTrial,
  type JobWorld,
  jobContext,
  survivesBeingRunTwice,
  survivesDyingAtEveryStep,
} from "../../tests/support/jobs.ts";
import { lifecycleDeps, MiniatureHost } from "../../tests/support/miniature-host.ts";
import { sha256 } from "../../tests/support/workloads.ts";
import { ringForUnfinished } from "../reconcile/unfinished-business.ts";
import { closeWorkloadJob } from "./close-workload.ts";
import { commitLogJob } from "./commit-log.ts";
import { enforceDeadlineJob } from "./enforce-deadline.ts";
import { settlePlacementJob } from "./settle-placement.ts";

const TIMEOUT_MS = 120_000;
const LOG = "one\ntwo\n";

interface Trial extends JobWorld, Placed {
  host: MiniatureHost;
  folder: string;
  ports: { objects: ObjectStore };
  close(): Promise<void>;
}

/** A workload whose order is out and whose host is connected. */
async function placed(over: { completeBy?: Date } = {}): Promise<Trial> {
  const database = await testDatabase(allEntities);
  const { db } = database;
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-lifecycle-jobs-"));
  const account = { teamId: TENANT, creditMicros: 10_000_000n, paymentMethod: true, concurrentRunsLimit: 5 };
  await db.command((tx) => openAccount(tx, account, clock.now()));
  const ids = await insertPlaced(db, clock.now(), over);
  await db.sql("update compute.account set active_runs = 1");
  const close = async () => {
    await database.close();
    rmSync(folder, { recursive: true });
  };
  const host = await MiniatureHost.open(lifecycleDeps(db, clock), ids);
  return { ...ids, db, clock, host, folder, ports: { objects: await openDiskStore(folder) }, close };
}

/** As `placed`, and it ran for 36 seconds and ended. */
async function ended(exit: Partial<ExitRecord> = { ranMs: 36_000 }): Promise<Trial> {
  const world = await placed();
  const { host } = world;
  await host.apply(host.running());
  for (const line of LOG.split(/(?<=\n)/)) await host.apply(host.log(Buffer.from(line)));
  await host.apply(host.exit(exit), host.end());
  return world;
}

/** As `ended`, and its resources are gone. */
async function gone(): Promise<Trial> {
  const world = await ended();
  await world.db.command((tx) => confirmGone(tx, world.orderId, world.clock.now()));
  return world;
}

const teardown = (world: Trial) => world.close();

async function eventTypes({ db }: Trial): Promise<string[]> {
  const rows = await db.sql<{ type: string }>("select type from compute.workload_event order by seq");
  return rows.map(({ type }) => type.replace("workload.", ""));
}

/** The books of the team: what it owns, what is held of it, and what was posted for workloads. */
async function books(db: Database) {
  const [account] = await db.sql("select balance_micros, held_micros, active_runs from compute.account");
  const posted = await db.sql(
    "select account, credit_micros, debit_micros from compute.ledger_entry where subject_id in (select id from compute.workload) order by account",
  );
  return { account, posted };
}

test("a placement is charged once, whatever happens to its settlement", { timeout: TIMEOUT_MS }, async () => {
  const trial: JobTrial<Trial> = {
    setup: gone,
    run: (world) => settlePlacementJob.body({ placementId: world.placementId }, jobContext(world)),
    assert: async (world) => {
      expect(await books(world.db)).toEqual({
        account: { balance_micros: 9_998_900n, held_micros: 0n, active_runs: 0 },
        posted: [
          { account: "compute_revenue", credit_micros: 1_000n, debit_micros: 0n },
          { account: "customer_credit", credit_micros: 0n, debit_micros: 1_100n },
          { account: "platform_fee_revenue", credit_micros: 100n, debit_micros: 0n },
        ],
      });
      expect((await eventTypes(world)).filter((type) => type === "settled")).toHaveLength(1);
      expect(await brokenInvariants(world.db)).toEqual([]);
    },
    teardown,
  };
  await survivesBeingRunTwice(trial);
  expect(await survivesDyingAtEveryStep(trial)).toContain("command, committed");
});

test("a log is committed once, whatever happens to its commit", { timeout: TIMEOUT_MS }, async () => {
  const trial: JobTrial<Trial> = {
    setup: ended,
    run: (world) => commitLogJob(world.ports.objects).body({ placementId: world.placementId }, jobContext(world)),
    assert: async (world) => {
      const [placement] = await world.db.sql(
        "select log_sha256, log_bytes::int, log_tail_lost, log_committed_at is not null as committed from compute.placement",
      );
      const digest = sha256(LOG);
      expect(placement).toEqual({ log_sha256: digest, log_bytes: LOG.length, log_tail_lost: false, committed: true });
      expect(await world.ports.objects.has(digest)).toBe(true);
      const files = readdirSync(world.folder, { recursive: true, withFileTypes: true }).filter((e) => e.isFile());
      expect(files.map((file) => file.name)).toEqual([digest]);
      expect(await brokenInvariants(world.db)).toEqual([]);
    },
    teardown,
  };
  await survivesBeingRunTwice(trial);
  const steps = await survivesDyingAtEveryStep(trial);
  expect(steps).toEqual(expect.arrayContaining(["objects.put, answered", "command, committed"]));
});

const deadline = new Date("2026-03-01T00:01:00Z");

test("a deadline ends work that has not begun once, whatever happens to its job", { timeout: TIMEOUT_MS }, async () => {
  const trial: JobTrial<Trial> = {
    setup: () => placed({ completeBy: deadline }),
    run: (world) => enforceDeadlineJob.body({ workloadId: world.workloadId }, jobContext(world)),
    assert: async (world) => {
      expect(world.clock.now()).toEqual(deadline);
      const [workload] = await world.db.sql("select status, reason from compute.workload");
      expect(workload).toEqual({ status: "failed", reason: "deadline_exceeded" });
      expect((await eventTypes(world)).filter((type) => type === "failed")).toHaveLength(1);
      expect(await brokenInvariants(world.db)).toEqual([]);
    },
    teardown,
  };
  await survivesBeingRunTwice(trial);
  expect(await survivesDyingAtEveryStep(trial)).toContain("command, committed");
});

test("a deadline stops work that runs once, whatever happens to its job", { timeout: TIMEOUT_MS }, async () => {
  const trial: JobTrial<Trial> = {
    setup: async () => {
      const world = await placed({ completeBy: deadline });
      await world.host.apply(world.host.running());
      return world;
    },
    run: (world) => enforceDeadlineJob.body({ workloadId: world.workloadId }, jobContext(world)),
    assert: async (world) => {
      const [placement] = await world.db.sql("select state, want from compute.placement");
      expect(placement).toEqual({ state: "running", want: "stop_deadline" });
      await world.host.apply(world.host.exit({ code: null, signal: "SIGTERM", killedBy: "deadline" }));
      await world.host.apply(world.host.end());
      const [workload] = await world.db.sql("select status, reason from compute.workload");
      expect(workload).toEqual({ status: "failed", reason: "deadline_exceeded" });
      expect(await brokenInvariants(world.db)).toEqual([]);
    },
    teardown,
  };
  await survivesBeingRunTwice(trial);
  await survivesDyingAtEveryStep(trial);
});

test("what a workload had pinned is let go once it is settled, whatever happens to that", {
  timeout: TIMEOUT_MS,
}, async () => {
  const secrets = new SecretPins(new SecretBox({ id: "test", key: Buffer.alloc(32, 1) }));
  const ports = { assets: assetPins, connections: connectionPins, secrets };
  const trial: JobTrial<Trial> = {
    setup: async () => {
      const world = await gone();
      const { db, clock, workloadId, placementId } = world;
      for (const holder of [workloadId, "wl_another"]) {
        await db.sql("insert into data.asset_pin values ($1, 'asset_one', $2, $3)", [holder, TENANT, clock.now()]);
        await db.sql("insert into data.secret_pin values ($1, 'TOKEN', $2, 'sec_one', 1, $3)", [
          ...[holder, TENANT, clock.now()],
        ]);
      }
      // Too early: its placement is open, so nothing may be let go.
      await closeWorkloadJob(ports).body({ workloadId }, jobContext(world));
      expect(await pins(world)).toHaveLength(4);
      await db.command((tx) => settle(tx, placementId, clock.now()));
      return world;
    },
    run: (world) => closeWorkloadJob(ports).body({ workloadId: world.workloadId }, jobContext(world)),
    assert: async (world) => {
      expect((await pins(world)).map(({ holder }) => holder)).toEqual(["wl_another", "wl_another"]);
      expect((await eventTypes(world)).filter((type) => type === "settled")).toHaveLength(1);
      expect(await brokenInvariants(world.db)).toEqual([]);
    },
    teardown,
  };
  await survivesBeingRunTwice(trial);
  await survivesDyingAtEveryStep(trial);
});

function pins({ db }: Trial): Promise<{ holder: string }[]> {
  return db.sql(`select holder_id as holder from data.asset_pin union all select holder_id from data.secret_pin`);
}

test.each([
  ["a minute later", (clock: FakeClock) => clock.advance(60_000)],
  ["as soon as the wall clock was set back", async (clock: FakeClock) => clock.stepWall(-3_600_000)],
])(
  "what a lost queue left undone of finished work is rung for from the rows alone, %s",
  {
    timeout: TIMEOUT_MS,
  },
  async (_, pass) => {
    const world = await gone();
    try {
      await world.db.sql("delete from infra.outbox");
      await pass(world.clock);
      await ringForUnfinished(world.db, world.clock.now());
      const rung = await world.db.sql<{ job: string }>("select distinct job from infra.outbox order by job");
      expect(rung.map(({ job }) => job)).toEqual([
        "compute.closeWorkload",
        "compute.commitLog",
        "compute.settlePlacement",
      ]);
      expect(await settlePlacementJob.body({ placementId: world.placementId }, jobContext(world))).toEqual(DONE);
      expect(await brokenInvariants(world.db)).toEqual([]);
    } finally {
      await world.close();
    }
  },
);
