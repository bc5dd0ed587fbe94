import { Arg, Ctx, Field, FieldResolver, ID, Int, ObjectType, Resolver, Root, Subscription } from "type-graphql";
import { closed, enumOf } from "../../../infra/db/closed.ts";
import { actorOf } from "../../../infra/graphql/context.ts";
import { SafeInt } from "../../../infra/graphql/scalars.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { ComputeContext } from "../compute-context.ts";
import { opening } from "../opening.ts";
import type { Placement } from "../placement/placement.entity.ts";
import { placementsOf } from "../placement/placement.reads.ts";
import { stagesOf } from "../stage/stage.reads.ts";
import { Workload } from "../workload/workload.entity.ts";
import { LiveLog, liveLogPages, liveLogPosition } from "./live-log.ts";
import { WorkloadLogItem } from "./log-item.ts";
import { followLog } from "./log-stream.ts";

const LOG_SOURCE = closed("LogSource", "Where the text of a log comes from.", ["committed", "live_snapshot"]);

@ObjectType({ description: "A generation's log that can be read as a whole." })
export class WorkloadLog {
  @Field(() => String, { description: "The stage.", simple: true }) stageId!: string;
  @Field(() => Int, { description: "The generation.", simple: true }) generation!: number;
  @Field(() => enumOf(LOG_SOURCE), { description: "Committed for good, or what the live log holds now.", simple: true })
  source!: (typeof LOG_SOURCE)[number];
  @Field(() => SafeInt, { description: "Bytes that can be read.", simple: true }) bytes!: number;
  @Field(() => String, {
    nullable: true,
    description: "SHA-256 of these bytes in hex; null for a snapshot.",
    simple: true,
  })
  sha256!: string | null;
  @Field(() => Boolean, { description: "The command wrote more than can be read.", simple: true }) truncated!: boolean;
  @Field(() => Boolean, { description: "The end of the log was lost with its host.", simple: true }) tailLost!: boolean;
}

interface LogArguments {
  workloadId: string;
  after: string | null;
  stageId: string | null;
  generation: number | null;
}

@Resolver(() => Workload)
export class WorkloadLogResolver {
  @FieldResolver(() => LiveLog, { description: "A page of live log. Kept for 24 hours after the end." })
  async liveLog(
    @Root() workload: Workload,
    @Ctx() context: ComputeContext,
    @Arg("after", () => String, {
      nullable: true,
      description: "Cursor of the page before; from the start unless given.",
    })
    after: string | null,
  ): Promise<LiveLog> {
    const { tenantId } = actorOf(context);
    const position = liveLogPosition(after);
    const capture = context.compute.settings.logCaptureBytes;
    if (!liveLogKept(workload, context.clock.now())) return { chunks: [], nextCursor: after ?? "", truncated: false };
    const page = await context
      .loader<string, Omit<LiveLog, "truncated">>(`liveLog:${position}`, (ids) =>
        liveLogPages(context.db, { tenantId, ids, after: position, captureBytes: capture }),
      )
      .load(workload.id);
    const placements = await placementsOf(context, workload.id);
    return { ...page, truncated: placements.some((p) => p.logTruncated || p.logBytes > capture) };
  }

  @FieldResolver(() => WorkloadLog, {
    nullable: true,
    description: "The latest log that can be read as a whole, a committed one first; null when there is none.",
  })
  async log(
    @Root() workload: Workload,
    @Ctx() context: ComputeContext,
    @Arg("stageId", () => String, { nullable: true, description: "Of this stage only." }) stageId: string | null,
    @Arg("generation", () => Int, { nullable: true, description: "Of this generation only." }) generation:
      | number
      | null,
  ): Promise<WorkloadLog | null> {
    const stages = await stagesOf(context, workload.id);
    const position = new Map(stages.map((stage) => [stage.id, stage.position]));
    const matching = (await placementsOf(context, workload.id))
      .filter((p) => p.logRemovedAt === null)
      .filter((p) => (!stageId || p.stageId === stageId) && (!generation || p.generation === generation))
      .sort((a, b) => position.get(a.stageRunId)! - position.get(b.stageRunId)! || a.generation - b.generation);
    const committed = matching.findLast((p) => p.logCommittedAt !== null);
    if (committed) return committedLog(committed);
    const live = liveLogKept(workload, context.clock.now()) ? matching.findLast((p) => p.logBytes > 0) : undefined;
    return live ? snapshotLog(live, context.compute.settings.logCaptureBytes) : null;
  }

  @Subscription(() => WorkloadLogItem, {
    description: "A workload's log from any byte on and then as it is written, until the workload is over.",
    subscribe: opening<LogArguments, WorkloadLogItem>((args, context) => {
      const { tenantId } = actorOf(context, "workloads:read");
      const { workloadId, after = null, stageId = null, generation = null } = args;
      return followLog(context, { tenantId, workloadId, after, stageId, generation });
    }),
  })
  workloadLogs(
    @Root() item: WorkloadLogItem,
    @Arg("workloadId", () => ID, { description: "The workload." }) _workloadId: string,
    @Arg("after", () => String, { nullable: true, description: "A cursor, or `stage:generation:bytes` for any byte." })
    _after: string | null,
    @Arg("stageId", () => String, { nullable: true, description: "Only this stage." }) _stageId: string | null,
    @Arg("generation", () => Int, { nullable: true, description: "Only this generation." }) _generation: number | null,
  ): WorkloadLogItem {
    return item;
  }
}

/** Live log is kept for a day after the end. */
function liveLogKept(workload: Workload, now: Date): boolean {
  const keptMs = LIMITS.liveLogRetentionHours * 3_600_000;
  return workload.terminalAt === null || now.getTime() - workload.terminalAt.getTime() < keptMs;
}

function committedLog(placement: Placement): WorkloadLog {
  const {
    stageId,
    generation,
    logBytes: bytes,
    logSha256: sha256,
    logTruncated: truncated,
    logTailLost: tailLost,
  } = placement;
  return { stageId, generation, source: "committed", bytes, sha256, truncated, tailLost };
}

function snapshotLog(placement: Placement, captureBytes: number): WorkloadLog {
  const { stageId, generation, logBytes, logTruncated, logTailLost: tailLost } = placement;
  return {
    stageId,
    generation,
    source: "live_snapshot",
    bytes: Math.min(logBytes, captureBytes),
    sha256: null,
    truncated: logTruncated || logBytes > captureBytes,
    tailLost,
  };
}
