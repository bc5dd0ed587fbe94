import { isWaitForOthersOver } from "./unavailable.ts";

type Step = () => Promise<unknown>;

/**
 * Runs steps that do not need each other, one after the other: one that fails, such as for a store that is away, does
 * not keep the rest. Throws what failed, all of it, once every step has run. A step that wants what others hold has not
 * failed: the next round finds it undone.
 */
export async function eachStep(steps: readonly Step[]): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => errors.push(error));
  throwFailures(errors, steps.length);
}

/** As `eachStep`, all at once. */
export async function allSteps(steps: readonly Step[]): Promise<void> {
  const ends = await Promise.allSettled(steps.map((step) => step()));
  throwFailures(
    ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : [])),
    steps.length,
  );
}

function throwFailures(errors: readonly unknown[], steps: number): void {
  const failures = errors.filter((error) => !isWaitForOthersOver(error));
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, `${failures.length} of ${steps} steps failed`);
}
