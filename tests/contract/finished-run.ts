import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import type { RunnerRecord } from "../../infra/runner/protocol.ts";
import { closeIfGone } from "../../subgraphs/compute/lifecycle/finish.commands.ts";
import { applyRecords } from "../../subgraphs/compute/lifecycle/record.commands.ts";
import { openSession } from "../../subgraphs/compute/lifecycle/session.commands.ts";
import { settle } from "../../subgraphs/compute/lifecycle/settlement.commands.ts";
import { storeResult } from "../../subgraphs/compute/output/result-object.commands.ts";
import { insertPlaced } from "../support/compute-fixtures.ts";
import type { RestFace } from "./rest-face.ts";

/** A workload that ran for two seconds, wrote a log and left an output, and was charged for it. */
export interface FinishedRun {
  readonly workloadId: string;
  readonly log: Buffer;
  readonly output: Buffer;
}

const isolation = { level: "bubblewrap", ownUid: true, seccomp: true, limits: "cgroup-v1", detail: "" } as const;

/** Reports a run as its host would, record by record, up to the settled end. */
export async function finishedRun({ compute, results }: RestFace): Promise<FinishedRun> {
  const { db, clock, settings } = compute;
  const deps = { db, clock, settings, secrets: { reveal: async () => [] }, random: (n: number) => randomBytes(n) };
  const placed = await insertPlaced(db, clock.now());
  const opened = await openSession(deps, { orderId: placed.orderId, token: placed.token, protocol: 1 });
  if ("refused" in opened) throw new Error(opened.message);
  let seq = 0;
  const report = (...bodies: Record<string, unknown>[]) => {
    const records = bodies.map((body) => ({ seq: ++seq, at: clock.now().toISOString(), ...body }) as RunnerRecord);
    return applyRecords(deps, opened.session, records);
  };
  const log = Buffer.from([...Buffer.from("hello, wörld\n"), 0xff, 0x0a]);
  const output = randomBytes(70_000);
  const stored = await storeResult({ ...deps, objects: results }, Readable.from([output]), {
    maxBytes: output.byteLength,
  });
  const file = { name: "results.tar", sha256: stored.sha256, bytes: stored.bytes, media: "application/x-tar" };
  await report({ type: "phase", phase: "running", isolation, note: null });
  clock.advance(2_000);
  await report(
    { type: "log", offset: 0, data: log.toString("base64") },
    { type: "output", ...file, isTar: true },
    { type: "unit", id: "u1", ms: 12 },
    { type: "exit", code: 0, signal: null, oom: false, killedBy: null, startFailure: null, ranMs: 2_000 },
    {
      type: "end",
      logBytes: log.byteLength,
      logSha256: createHash("sha256").update(log).digest("hex"),
      droppedUnits: 0,
    },
  );
  await db.sql("update compute.attempt set state = 'gone', gone_at = $2 where placement_id = $1", [
    placed.placementId,
    clock.now(),
  ]);
  await db.command((tx) => closeIfGone(tx, placed.placementId, clock.now()));
  await db.command((tx) => settle(tx, placed.placementId, clock.now()));
  return { workloadId: placed.workloadId, log, output };
}
