import type { Database, Tx } from "../../infra/db/database.ts";
import { enqueue } from "../../infra/db/outbox.ts";
import type { Clock } from "../../infra/kernel/clock.ts";
import {
  closeWorkload,
  commitLog,
  enforceDeadline,
  placeStage,
  settlePlacement,
} from "../../subgraphs/compute/jobs.ts";
import { closeIfGone } from "../../subgraphs/compute/lifecycle/finish.commands.ts";
import type { Reconciler } from "./schedule.ts";

const EVERY_MS = 10_000;
/** Rows of each kind that one round takes up. */
const BATCH = 200;
/** What is younger than this is still on its ordinary way. */
const GRACE_MS = 30_000;

/** Looks for business that nobody is on any more. */
export function unfinishedReconciler({ db, clock }: { db: Database; clock: Clock }): Reconciler {
  return {
    name: "unfinished business",
    everyMs: EVERY_MS,
    run: async () => {
      await ringForUnfinished(db, clock.now());
    },
  };
}

/**
 * Rings the bell again for what a lost queue or a job that gave up has left: the rows say what is undone, so an emptied
 * queue costs time and no work. Every job that is rung for may have been done meanwhile and then does nothing.
 */
export async function ringForUnfinished(db: Database, now: Date): Promise<number> {
  const before = new Date(now.getTime() - GRACE_MS);
  const ahead = new Date(now.getTime() + GRACE_MS);
  let rung = 0;
  const ring = async (found: { id: string }[], bell: (tx: Tx, id: string) => Promise<void>) => {
    for (const { id } of found) await db.command((tx) => bell(tx, id));
    rung += found.length;
  };
  await ring(await ids(db, STUCK_STAGES, [before]), (tx, stageRunId) => enqueue(tx, placeStage, { stageRunId }, now));
  await ring(await ids(db, ENDED_NOT_GONE, [before, ahead]), (tx, placementId) => closeIfGone(tx, placementId, now));
  await ring(await ids(db, UNSETTLED, [before, ahead]), (tx, placementId) =>
    enqueue(tx, settlePlacement, { placementId }, now),
  );
  await ring(await ids(db, UNCOMMITTED_LOGS, [before, ahead]), (tx, placementId) =>
    enqueue(tx, commitLog, { placementId }, now),
  );
  await ring(await ids(db, UNCLOSED, [before, ahead]), (tx, workloadId) =>
    enqueue(tx, closeWorkload, { workloadId }, now),
  );
  await ring(await ids(db, PAST_DEADLINE, [before]), (tx, workloadId) =>
    enqueue(tx, enforceDeadline, { workloadId }, now),
  );
  return rung;
}

function ids(db: Database, text: string, times: readonly Date[]): Promise<{ id: string }[]> {
  return db.sql<{ id: string }>(`${text} limit ${BATCH}`, times);
}

/** What happened at a time that lies ahead happened before the wall clock was set back, and that is long enough ago. */
const longAgo = (column: string) => `(${column} < $1 or ${column} > $2)`;

const STUCK_STAGES =
  "select id from compute.stage where status = 'placing' and next_try_at < $1 order by next_try_at, id";
const ENDED_NOT_GONE = `select p.id from compute.placement p where p.state = 'ended' and p.gone_at is null and ${longAgo("p.ended_at")}
  and not exists (select 1 from compute.attempt a where a.placement_id = p.id and a.state <> 'gone') order by p.id`;
const UNSETTLED = `select id from compute.placement where state = 'ended' and ${longAgo("gone_at")} order by gone_at, id`;
const UNCOMMITTED_LOGS = `select id from compute.placement
  where log_complete and log_bytes > 0 and log_committed_at is null and log_removed_at is null and state in ('ended', 'closed') and ${longAgo("ended_at")} order by id`;
const UNCLOSED = `select id from compute.workload where ${longAgo("terminal_at")} and settled_at is null order by terminal_at, id`;
const PAST_DEADLINE = `select id from compute.workload
  where complete_by < $1 and status not in ('completed', 'failed', 'cancelled') order by complete_by, id`;
