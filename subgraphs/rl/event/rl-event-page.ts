import { Field, GraphQLISODateTime, ID, Int, ObjectType } from "type-graphql";
import { Json, SafeInt } from "../../../infra/graphql/scalars.ts";

@ObjectType({ description: "One observation of a task, as the run reported it." })
export class RlEventRow {
  @Field(() => ID, { description: "The platform's own number of the row. No cursor.", simple: true }) id!: string;
  @Field(() => String, { description: "The stage that reported it.", simple: true }) stageId!: string;
  @Field(() => Int, { description: "Which attempt of the stage reported it.", simple: true }) generation!: number;
  @Field(() => GraphQLISODateTime, { description: "When it arrived first.", simple: true }) receivedAt!: Date;
  @Field(() => Json, { description: "What was reported, in the spelling of the line protocol.", simple: true })
  event!: unknown;
}

@ObjectType({
  description:
    "RL evidence of a workload, in the order of its arrival. While the run is on, ask again with the cursor.",
})
export class RlEventPage {
  @Field(() => Int, { description: "The version of this shape; 1.", simple: true }) schemaVersion!: number;
  @Field(() => [RlEventRow], { description: "The rows after the cursor.", simple: true }) events!: RlEventRow[];
  @Field(() => String, {
    description: "Where to go on; the given cursor when nothing is new. Never null.",
    simple: true,
  })
  nextCursor!: string;
  @Field(() => Boolean, { description: "More rows are there already.", simple: true }) hasMore!: boolean;
  @Field(() => SafeInt, { description: "Events that attempts reported as lost, at least.", simple: true })
  droppedEvents!: number;
  @Field(() => Boolean, { description: "Something was lost or not stored.", simple: true }) truncated!: boolean;
}
