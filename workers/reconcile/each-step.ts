/**
 * Runs steps that do not need each other, one after the other: one that fails, such as for a store that is away, does
 * not keep the rest. Throws what failed, all of it, once every step has run.
 */
export async function eachStep(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => errors.push(error));
  if (errors.length === 1) throw errors[0];
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} of ${steps.length} steps failed`);
}
