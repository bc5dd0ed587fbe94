import { type Client, ClientError } from "./client.ts";
import { isOver } from "./follow.ts";
import type { LogPlace } from "./log-reader.ts";

/** How far a workload's log went at one moment. */
export interface Printed {
  readonly status: string;
  /** The workload is over and all of its log is there, so a stream of it comes to its end. */
  readonly isWhole: boolean;
  /** As far as a stream of the log can get by itself; null when nothing was printed. */
  readonly place: LogPlace | null;
}

interface Run {
  generation: number;
  logBytes: number;
  logComplete: boolean;
}

const PRINTED = `query printed($id: ID!) {
  workload(id: $id) { status stages { stageId placements { generation logBytes logComplete } } }
}`;

/** How far a workload's log goes now. Throws `ClientError` when the team has no such workload. */
export async function printedSoFar(client: Client, workloadId: string): Promise<Printed> {
  const { workload } = await client.query<{
    workload: { status: string; stages: { stageId: string; placements: Run[] }[] } | null;
  }>(PRINTED, { id: workloadId });
  if (!workload) throw new ClientError(`The team has no workload ${workloadId}. "nodus ls" shows those that it has.`);
  const { status, stages } = workload;
  const runs = stages.flatMap(({ stageId, placements }) => placements.map((run) => ({ ...run, stageId })));
  const firstOpen = runs.findIndex((run) => !run.logComplete);
  // A stream tells one generation after another, and waits at the first whose log may still grow.
  const told = firstOpen === -1 ? runs : runs.slice(0, firstOpen + 1);
  const last = told.findLast((run) => run.logBytes > 0);
  return {
    status,
    isWhole: isOver(status) && firstOpen === -1,
    place: last ? { stageId: last.stageId, generation: last.generation, bytes: last.logBytes } : null,
  };
}
