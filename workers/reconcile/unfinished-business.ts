import type { Database, Tx } from "../../infra/db/database.ts";
import { eachStep } from "../../infra/db/each-step.ts";
import { forJob } from "../../infra/db/job-bounds.ts";
import { enqueue } from "../../infra/db/outbox.ts";
import { teamsInTurn } from "../../infra/db/teams-in-turn.ts";
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
/** Generations without a committed log that one round looks at. */
const LOGS_LOOKED_AT = 5_000;
/** What is younger than this is still on its ordinary way. */
const GRACE_MS = 30_000;

/** Looks for business that nobody is on any more. */
export function unfinishedReconciler({ db, clock }: { db: Database; clock: Clock }): Reconciler {
  let logsAfter = "";
  return {
    name: "unfinished business",
    everyMs: EVERY_MS,
    run: async () => {
      const page = await pageOfLogs(db, logsAfter);
      logsAfter = page.isLast ? "" : page.last;
      await ringForUnfinished(db, clock.now(), page);
    },
  };
}

/** Generations whose logs are not committed, by their ids: those behind `after`, up to `last`. */
interface LogPage {
  after: string;
  last: string;
  isLast: boolean;
}

/** The next ones to look at. Most wrote nothing and have nothing to commit; they stay among them until their time is over. */
async function pageOfLogs(db: Database, after = ""): Promise<LogPage> {
  const [page] = await db.sql<{ last: string | null; count: number }>(
    `select max(id) as last, count(*)::int as count from (
       select id from compute.placement where ${UNCOMMITTED} and id > $1 order by id limit ${LOGS_LOOKED_AT}) page`,
    [after],
  );
  return { after, last: page!.last ?? after, isLast: page!.count < LOGS_LOOKED_AT };
}

/**
 * Rings the bell again for what a lost queue or a job that gave up has left: the rows say what is undone, so an emptied
 * queue costs time and no work. Every job that is rung for may have been done meanwhile and then does nothing. Of the
 * logs it looks at those of `page`, the first unless told.
 */
export async function ringForUnfinished(db: Database, now: Date, page?: LogPage): Promise<void> {
  const before = new Date(now.getTime() - GRACE_MS);
  const ahead = new Date(now.getTime() + GRACE_MS);
  const logs = page ?? (await pageOfLogs(db));
  const ring = async (
    text: string,
    values: readonly (Date | string)[],
    bell: (tx: Tx, id: string) => Promise<unknown>,
  ) => {
    const found = await db.sql<Unfinished>(`${text} limit ${BATCH}`, values);
    const ringFor = (row: Unfinished) => () => db.command((tx) => bell(tx, row.id), forJob(row.team_id));
    await eachStep(found.map(ringFor));
  };
  const long = [before, ahead];
  await eachStep([
    () => ring(STUCK_STAGES, [before], (tx, stageRunId) => enqueue(tx, placeStage, { stageRunId }, now)),
    () => ring(ENDED_NOT_GONE, long, (tx, placementId) => closeIfGone(tx, placementId, now)),
    () => ring(UNSETTLED, long, (tx, placementId) => enqueue(tx, settlePlacement, { placementId }, now)),
    () =>
      ring(UNCOMMITTED_LOGS, [...long, logs.after, logs.last], (tx, placementId) =>
        enqueue(tx, commitLog, { placementId }, now),
      ),
    () => ring(UNCLOSED, long, (tx, workloadId) => enqueue(tx, closeWorkload, { workloadId }, now)),
    () => ring(PAST_DEADLINE, [before], (tx, workloadId) => enqueue(tx, enforceDeadline, { workloadId }, now)),
  ]);
}

interface Unfinished {
  id: string;
  team_id: string;
}

/** What happened at a time that lies ahead happened before the wall clock was set back, and that is long enough ago. */
const longAgo = (column: string) => `(${column} < $1 or ${column} > $2)`;

const STUCK_STAGES =
  "select id, tenant_id as team_id from compute.stage where status = 'placing' and next_try_at < $1 order by next_try_at, id";
const ENDED_NOT_GONE = `select p.id, p.tenant_id as team_id from compute.placement p where p.state = 'ended' and p.gone_at is null and ${longAgo("p.ended_at")}
  and not exists (select 1 from compute.attempt a where a.placement_id = p.id and a.state <> 'gone') order by ${teamsInTurn("p.tenant_id", "p.id")}`;
const UNSETTLED = `select id, tenant_id as team_id from compute.placement
  where state = 'ended' and ${longAgo("gone_at")} order by ${teamsInTurn("tenant_id", "gone_at, id")}`;
const UNCOMMITTED = "log_complete and log_committed_at is null and log_removed_at is null";
const UNCOMMITTED_LOGS = `select id, tenant_id as team_id from compute.placement
  where ${UNCOMMITTED} and id > $3 and id <= $4 and log_bytes > 0 and state in ('ended', 'closed') and ${longAgo("ended_at")}
  order by ${teamsInTurn("tenant_id", "id")}`;
const UNCLOSED = `select id, tenant_id as team_id from compute.workload
  where ${longAgo("terminal_at")} and settled_at is null order by ${teamsInTurn("tenant_id", "terminal_at, id")}`;
const PAST_DEADLINE = `select id, tenant_id as team_id from compute.workload
  where complete_by < $1 and status not in ('completed', 'failed', 'cancelled') order by ${teamsInTurn("tenant_id", "complete_by, id")}`;
