import { ColumnarFailure } from "./task.ts";

/**
 * Runs a task, and once more when its process ended without an answer: it may have been killed by whatever else this
 * machine does. One that ends twice has its reason.
 */
export async function triedTwice<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof ColumnarFailure && (error.reason === "crashed" || error.reason === "lost"))) throw error;
    return run();
  }
}
