import { COMMON } from "../../../../infra/kernel/refusal.ts";
import { WORKLOAD } from "../workload.refusals.ts";
import { refuseOthers } from "./outputs.ts";
import { refuse } from "./refuse.ts";
import { hasControl, isObject, utf8Bytes } from "./text.ts";

const ENVIRONMENTS = ["custom", "reasoning-gym", "swe-smith", "textarena", "miniwob", "officeqa", "appworld"];
const MAX_MODEL_BYTES = 256;
const MAX_TASKS = 10_000;

/**
 * Checks the association with an RL experiment. It is the one strict object of a request: a member that is unknown or
 * comes twice is refused.
 * @param repeated pointers of members that the request's text repeats
 */
export function checkRl(rl: unknown, repeated: readonly string[]): Record<string, unknown> {
  const twice = repeated.find((pointer) => pointer === "/rl" || pointer.startsWith("/rl/"));
  if (twice !== undefined) refuse(COMMON.duplicate_field, twice);
  if (!isObject(rl)) refuse(WORKLOAD.invalid_rl, "/rl", "rl is an object or null.");
  refuseOthers(rl, ["schema_version", "environment_id", "mode", "model", "planned_tasks", "recipe"], "/rl");
  const { schema_version: version, environment_id: environment, mode, model, planned_tasks: tasks, recipe } = rl;
  if (version !== 1) refuse(WORKLOAD.invalid_rl, "/rl/schema_version", "rl.schema_version is 1.");
  if (typeof environment !== "string" || !ENVIRONMENTS.includes(environment))
    refuse(WORKLOAD.invalid_rl, "/rl/environment_id", `rl.environment_id is one of ${ENVIRONMENTS.join(", ")}.`);
  if (mode !== "train" && mode !== "evaluate") refuse(WORKLOAD.invalid_rl, "/rl/mode", "rl.mode is train or evaluate.");
  if (environment === "officeqa" && mode !== "evaluate")
    refuse(WORKLOAD.invalid_rl, "/rl/mode", "officeqa can only be evaluated.");
  if (typeof model !== "string" || !isModel(model))
    refuse(WORKLOAD.invalid_rl, "/rl/model", `rl.model is 1 to ${MAX_MODEL_BYTES} bytes without outer spaces.`);
  if (!Number.isInteger(tasks) || (tasks as number) < 1 || (tasks as number) > MAX_TASKS)
    refuse(WORKLOAD.invalid_rl, "/rl/planned_tasks", `rl.planned_tasks is a whole number from 1 to ${MAX_TASKS}.`);
  if (recipe !== undefined && recipe !== null)
    refuse(WORKLOAD.invalid_rl, "/rl/recipe", "rl.recipe is set by managed runs only.");
  return { schema_version: version, environment_id: environment, mode, model, planned_tasks: tasks };
}

function isModel(model: string): boolean {
  return (
    model !== "" &&
    utf8Bytes(model) <= MAX_MODEL_BYTES &&
    model === model.trim() &&
    model.isWellFormed() &&
    !hasControl(model)
  );
}
