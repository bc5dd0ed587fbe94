import { Directive, Field, ID, Int, ObjectType } from "type-graphql";
import { closed, enumOf } from "../../../infra/db/closed.ts";
import { Usd } from "../../../infra/graphql/scalars.ts";
import { MICROS_PER_USD, type Micros } from "../../../infra/kernel/micros.ts";

const RL_MODES = closed("RlMode", "What a run of a recipe does.", ["evaluate", "train"]);
export type RlMode = (typeof RL_MODES)[number];

@ObjectType({ description: "What a run of a recipe does unless it is told otherwise." })
export class RlRecipeDefaults {
  @Field(() => Int, { description: "Tasks of an evaluation.", simple: true }) evaluationTasks!: number;
  @Field(() => Int, { description: "Steps of a training.", simple: true }) trainingSteps!: number;
  @Field(() => Usd, { description: "What the run may cost.", simple: true }) maxCostUsd!: Micros;
  @Field(() => Int, { description: "Where its randomness starts.", simple: true }) seed!: number;
}

@ObjectType({ description: "How far the settings of a run may go." })
export class RlRecipeLimits {
  @Field(() => Int, { description: "Fewest tasks of an evaluation.", simple: true }) evaluationTasksMin!: number;
  @Field(() => Int, { description: "Most tasks of an evaluation.", simple: true }) evaluationTasksMax!: number;
  @Field(() => Int, { description: "Fewest steps of a training.", simple: true }) trainingStepsMin!: number;
  @Field(() => Int, { description: "Most steps of a training.", simple: true }) trainingStepsMax!: number;
}

@ObjectType({ description: "A file that a run leaves." })
export class RlRecipeOutput {
  @Field(() => String, { description: "The output's name.", simple: true }) name!: string;
  @Field(() => String, { description: "What is in it.", simple: true }) description!: string;
}

/** A recipe is code and an image of the platform's, so the list of them is part of the release and no table. */
@Directive('@key(fields: "id version")')
@ObjectType("RlRecipe", {
  description: "An RL run that the platform has put together: environment, model, tasks and commands.",
})
export class RlRecipe {
  @Field(() => ID, { description: "The recipe's name for programs.", simple: true }) id!: string;
  @Field(() => String, { description: "Its version.", simple: true }) version!: string;
  @Field(() => String, { description: "The environment that gives the tasks.", simple: true }) environmentId!: string;
  @Field(() => String, { description: "Its name for people.", simple: true }) name!: string;
  @Field(() => String, { description: "The model that is run.", simple: true }) model!: string;
  @Field(() => String, { description: "The exact revision of the model.", simple: true }) modelRevision!: string;
  @Field(() => String, { description: "Which of the environment's tasks are given.", simple: true }) taskset!: string;
  @Field(() => [enumOf(RL_MODES)], { description: "What it can do.", simple: true }) modes!: readonly RlMode[];
  @Field(() => Boolean, { description: "A run of it can be started here and now.", simple: true }) available!: boolean;
  @Field(() => String, { nullable: true, description: "Why none can be started; null when one can.", simple: true })
  unavailableReason!: string | null;
  @Field(() => RlRecipeDefaults, { description: "What it does unless told otherwise.", simple: true })
  defaults!: RlRecipeDefaults;
  @Field(() => RlRecipeLimits, { description: "How far its settings may go.", simple: true }) limits!: RlRecipeLimits;
  @Field(() => [RlRecipeOutput], { description: "What a run leaves.", simple: true })
  outputs!: readonly RlRecipeOutput[];
}

const LEG_COUNTING: RlRecipe = Object.assign(new RlRecipe(), {
  id: "reasoning-gym-leg-counting",
  version: "1.0.0",
  environmentId: "reasoning-gym",
  name: "Counting legs (Reasoning Gym)",
  model: "Qwen/Qwen2.5-0.5B-Instruct",
  modelRevision: "7ae557604adf67be50417f59c2c2f167def9a775",
  taskset: "leg_counting",
  modes: RL_MODES,
  available: false,
  unavailableReason: "This release has no runtime image for managed recipes. A custom RL workload can be run instead.",
  defaults: { evaluationTasks: 16, trainingSteps: 20, maxCostUsd: 5n * MICROS_PER_USD, seed: 42 },
  limits: { evaluationTasksMin: 4, evaluationTasksMax: 64, trainingStepsMin: 1, trainingStepsMax: 50 },
  outputs: [
    { name: "results", description: "Every task with its answer, outcome and reward." },
    { name: "adapter", description: "What a training has changed of the model; training only." },
  ],
});

/** Every recipe of this release, in order of id and version. */
export const RECIPES: readonly RlRecipe[] = [LEG_COUNTING];
