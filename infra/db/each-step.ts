import { teamThatWaited } from "./team-that-waited.ts";
import { isWaitForOthersOver } from "./unavailable.ts";

type Step = () => Promise<unknown>;

/** Steps waited in vain for what others hold. None of them has failed: the next round finds them undone. */
export class StepsHeld extends Error {
  override readonly name = "StepsHeld";
  readonly steps: number;
  /** Of one of them; null where that is not known. */
  readonly teamId: string | null;

  constructor(steps: number, teamId: string | null) {
    super(`${steps} steps wait for what others hold`);
    this.steps = steps;
    this.teamId = teamId;
  }
}

/** Several steps failed, or one did and others were held. */
class StepsFailed extends AggregateError {
  override readonly name = "StepsFailed";
}

/**
 * Runs steps that do not need each other, one after the other: one that fails, such as for a store that is away, does
 * not keep the rest. Throws what failed, all of it, once every step has run, and `StepsHeld` for those that wait.
 */
export async function eachStep(steps: readonly Step[]): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => errors.push(error));
  throwAll(errors, steps.length);
}

/** As `eachStep`, all at once. */
export async function allSteps(steps: readonly Step[]): Promise<void> {
  const ends = await Promise.allSettled(steps.map((step) => step()));
  throwAll(
    ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : [])),
    steps.length,
  );
}

/** Tells what failed from what waits, also where steps had steps of their own. */
export function heldApart(errors: readonly unknown[]): { failures: unknown[]; held: StepsHeld | null } {
  const each = errors.flatMap((error) => (error instanceof StepsFailed ? (error.errors as unknown[]) : [error]));
  const waits = each.filter((error) => error instanceof StepsHeld || isWaitForOthersOver(error));
  const failures = each.filter((error) => !waits.includes(error));
  if (waits.length === 0) return { failures, held: null };
  const steps = waits.reduce<number>((sum, wait) => sum + (wait instanceof StepsHeld ? wait.steps : 1), 0);
  const teamId = waits.map(teamThatWaited).find((team) => team !== null) ?? null;
  return { failures, held: new StepsHeld(steps, teamId) };
}

function throwAll(errors: readonly unknown[], steps: number): void {
  const { failures, held } = heldApart(errors);
  if (failures.length === 0 && held) throw held;
  if (failures.length === 1 && !held) throw failures[0];
  if (failures.length > 0)
    throw new StepsFailed(held ? [...failures, held] : failures, `${failures.length} of ${steps} steps failed`);
}
