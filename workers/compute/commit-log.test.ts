import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { openDiskStore } from "../../infra/objects/disk-store.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { logBytes } from "../../subgraphs/compute/log/log-source.ts";
import { Placement } from "../../subgraphs/compute/placement/placement.entity.ts";
import { insertAccount, type Placed } from "../../tests/support/compute-fixtures.ts";
import type { TestDatabase } from "../../tests/support/database.ts";
import { jobContext } from "../../tests/support/jobs.ts";
import { insertHosted, lifecycleDatabase } from "../../tests/support/lifecycle-world.ts";
import { lifecycleDeps } from "../../tests/support/miniature-host.ts";
import { commitLogJob } from "./commit-log.ts";

const clock = new FakeClock("2026-03-01T00:00:00Z");
const folder = mkdtempSync(join(tmpdir(), "nodus-commit-log-"));
let database: TestDatabase;
let objects: ObjectStore;
let placed: Placed;

beforeAll(async () => {
  database = await lifecycleDatabase();
  objects = await openDiskStore(folder);
  await insertAccount(database.db, clock.now());
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true });
});

const LOG = Buffer.concat(["one\n", "two\n", "three\n"].map((line) => Buffer.from(line)));
const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

beforeEach(async () => {
  const hosted = await insertHosted(lifecycleDeps(database.db, clock));
  const { host } = hosted;
  placed = hosted.placed;
  await host.apply(host.running());
  for (const line of ["one\n", "two\n", "three\n"]) await host.apply(host.log(Buffer.from(line)));
  await host.apply(host.exit(), host.end());
});

/** Runs the job and returns the lines that it logged as errors. */
async function commit(): Promise<string[]> {
  const errors: string[] = [];
  const destination = { write: (line: string) => void errors.push(line) };
  const logger = createLogger({ level: "error", role: "test", destination });
  const outcome = await commitLogJob(objects).body(
    { placementId: placed.placementId },
    jobContext({ db: database.db, clock }, { logger }),
  );
  expect(outcome).toEqual({ outcome: "done" });
  return errors;
}

const placement = async () => (await database.db.row(Placement, "where t.id = $1", [placed.placementId]))!;

async function committedBytes(): Promise<Buffer> {
  await database.db.sql("delete from compute.log_chunk where placement_id = $1", [placed.placementId]);
  const pieces: Buffer[] = [];
  for await (const piece of logBytes(database.db, objects, await placement())) pieces.push(piece);
  return Buffer.concat(pieces);
}

test("a whole log is committed under its host's digest", async () => {
  expect(await commit()).toEqual([]);
  expect(await placement()).toMatchObject({ logSha256: sha256(LOG), logTailLost: false, logCommittedAt: clock.now() });
  expect(await committedBytes()).toEqual(LOG);
});

test("a log that its host hashed differently is committed under our digest, and the difference is told once", async () => {
  await database.db.sql("update compute.placement set log_sha256 = $2 where id = $1", [
    placed.placementId,
    "f".repeat(64),
  ]);
  expect([(await commit()).length, (await commit()).length]).toEqual([1, 0]);
  expect(await placement()).toMatchObject({ logSha256: sha256(LOG), logBytes: LOG.length, logTailLost: false });
  expect(await committedBytes()).toEqual(LOG);
});

test("a log with a hole is committed up to it, and its end is lost", async () => {
  await database.db.sql("delete from compute.log_chunk where placement_id = $1 and byte_offset = 4", [
    placed.placementId,
  ]);
  expect(await commit()).toHaveLength(1);
  const rest = Buffer.from("one\n");
  expect(await placement()).toMatchObject({ logSha256: sha256(rest), logBytes: rest.length, logTailLost: true });
  expect(await committedBytes()).toEqual(rest);
});
