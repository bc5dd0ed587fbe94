import { Arg, Ctx, Field, FieldResolver, ID, Int, Mutation, ObjectType, Query, Resolver, Root } from "type-graphql";
import { closed, enumOf } from "../../../infra/db/closed.ts";
import { connectionOf, FIRST, pageSize } from "../../../infra/graphql/connection.ts";
import { actorOf, type GraphContext } from "../../../infra/graphql/context.ts";
import { Json } from "../../../infra/graphql/scalars.ts";
import type { ComputeContext } from "../compute-context.ts";
import { Member } from "../member/member.entity.ts";
import { memberOf } from "../member/member.resolver.ts";
import { cancelWorkload } from "./cancel-workload.ts";
import { createWorkload, type WorkloadDeps } from "./create-workload.ts";
import { validateOnly } from "./validate-workload.ts";
import { WORKLOAD_STATUS, Workload, type WorkloadLink } from "./workload.entity.ts";
import { CancelWorkloadInput, CreateWorkloadInput, ValidateWorkloadInput, wireRequest } from "./workload.input.ts";
import type { WorkloadState } from "./workload.machine.ts";
import { workloadOf } from "./workload.reads.ts";
import { listWorkloads, type WorkloadPage } from "./workload-list.ts";

const WorkloadConnection = connectionOf(Workload, "Workload");
const WORKLOAD_SCOPE = closed("WorkloadScope", "Whose workloads a list shows.", ["team", "mine"]);

@ObjectType("WorkloadLink", { description: "A page outside the platform that a run shows itself on." })
export class WorkloadLinkType implements WorkloadLink {
  @Field(() => String, { description: "What kind of page, such as `wandb`.", simple: true }) kind!: string;
  @Field(() => String, { description: "Its address.", simple: true }) url!: string;
}

@ObjectType({ description: "A workload that was accepted, now or under the same key before." })
export class CreateWorkloadPayload {
  @Field(() => Workload, { description: "The workload as it is now.", simple: true }) workload!: Workload;
  @Field(() => Boolean, {
    description: "The key was used before for the same request, which this is the answer to.",
    simple: true,
  })
  replayed!: boolean;
  @Field(() => enumOf(WORKLOAD_STATUS), {
    description: "Its status as it was accepted, the same in every answer.",
    simple: true,
  })
  status!: WorkloadState;
  @Field(() => Int, { description: "Its revision as it was accepted, the same in every answer.", simple: true })
  revision!: number;
}

@ObjectType({ description: "A workload that could be submitted." })
export class ValidateWorkloadPayload {
  @Field(() => Boolean, { description: "Always true: what is not valid is an error.", simple: true }) valid!: boolean;
  @Field(() => Boolean, { description: "Always false: nothing was submitted.", simple: true }) submitted!: boolean;
  @Field(() => Json, { description: "The request in wire spelling, with defaults filled in.", simple: true })
  workload!: unknown;
  @Field(() => String, { description: "A sentence for people.", simple: true }) message!: string;
}

@ObjectType({ description: "A workload that was asked to end." })
export class CancelWorkloadPayload {
  @Field(() => Workload, { description: "The workload as it is now.", simple: true }) workload!: Workload;
  @Field(() => String, { description: "Always `cancel_requested`, also when it was over before.", simple: true })
  status!: string;
}

@Resolver(() => Workload)
export class WorkloadResolver {
  @Query(() => Workload, { nullable: true, description: "A workload of the team; null when there is none of this id." })
  workload(
    @Arg("id", () => ID, { description: "The workload's id." }) id: string,
    @Ctx() context: ComputeContext,
  ): Promise<Workload | null> {
    return workloadOf(context, id);
  }

  @Query(() => WorkloadConnection, { description: "The team's workloads, newest first." })
  workloads(
    @Ctx() context: ComputeContext,
    @Arg("first", FIRST.type, FIRST.options) first: number | null,
    @Arg("after", () => String, { nullable: true, description: "Go on after this cursor." }) after: string | null,
    @Arg("offset", () => Int, {
      nullable: true,
      description: "Skip this many, instead of a cursor; pages shift as workloads come.",
    })
    offset: number | null,
    @Arg("status", () => [String], {
      nullable: true,
      description: "Only these: states, `active` or `terminal`. Words that mean nothing are ignored.",
    })
    status: string[] | null,
    @Arg("scope", () => enumOf(WORKLOAD_SCOPE), { defaultValue: "team", description: "`mine` needs a member's key." })
    scope: "team" | "mine",
  ): Promise<WorkloadPage> {
    const actor = actorOf(context, "workloads:read");
    return listWorkloads(context.db, actor, {
      first: pageSize(first),
      after: after ?? null,
      offset: offset ?? null,
      status: status ?? [],
      scope,
    });
  }

  @Mutation(() => CreateWorkloadPayload, {
    description:
      "Submits a workload. It is accepted then, not started; the same key and request give the same workload.",
  })
  async createWorkload(
    @Arg("input", () => CreateWorkloadInput, { description: "The workload and its key." }) input: CreateWorkloadInput,
    @Ctx() context: ComputeContext,
  ): Promise<CreateWorkloadPayload> {
    const request = { payload: wireRequest(input.workload), idempotencyKey: input.idempotencyKey };
    const actor = actorOf(context, "workloads:write");
    const submitted = await createWorkload(depsOf(context), actor, request, context.clock.now());
    return { ...submitted, status: "accepted", revision: 1 };
  }

  @Mutation(() => ValidateWorkloadPayload, {
    description: "Judges a workload with its assets and secrets, without submitting or reserving anything.",
  })
  async validateWorkload(
    @Arg("input", () => ValidateWorkloadInput, { description: "The workload." })
    input: ValidateWorkloadInput,
    @Ctx() context: ComputeContext,
  ): Promise<ValidateWorkloadPayload> {
    const actor = actorOf(context, "workloads:write");
    const request = { payload: wireRequest(input.workload) };
    const judged = await validateOnly(depsOf(context), actor, request, context.clock.now());
    return { valid: true, submitted: false, ...judged };
  }

  @Mutation(() => CancelWorkloadPayload, {
    description: "Asks a workload to end. Safe to repeat, and without effect on one that is over.",
  })
  async cancelWorkload(
    @Arg("input", () => CancelWorkloadInput, { description: "The workload." }) input: CancelWorkloadInput,
    @Ctx() context: ComputeContext,
  ): Promise<CancelWorkloadPayload> {
    const actor = actorOf(context, "workloads:write");
    const workload = await cancelWorkload(context.db, actor, input.id, context.clock.now());
    return { workload, status: "cancel_requested" };
  }

  @FieldResolver(() => [WorkloadLinkType], { description: "Pages that its live output named, such as a wandb run." })
  links(@Root() workload: Workload): WorkloadLink[] {
    return workload.links;
  }

  @FieldResolver(() => Member, { nullable: true, description: "The member who submitted it." })
  async owner(@Root() workload: Workload, @Ctx() context: ComputeContext): Promise<Member | null> {
    return workload.ownerUserId === null ? null : memberOf(context, workload.ownerUserId);
  }
}

@Resolver(() => WorkloadConnection)
export class WorkloadConnectionResolver {
  @FieldResolver(() => Int, { nullable: true, description: "Offset of the next page; null on the last one." })
  nextOffset(@Root() page: WorkloadPage): number | null {
    return page.nextOffset;
  }
}

/** What the commands need of a request's context. */
function depsOf(context: ComputeContext): WorkloadDeps {
  return { ...context.compute, db: context.db };
}

/** A workload of the caller's team; null for anything else. */
export function workloadReference(reference: { id: string }, context: GraphContext): Promise<Workload | null> {
  return workloadOf(context, reference.id);
}
