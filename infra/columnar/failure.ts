import { UNREPRESENTABLE } from "./sql.ts";
import { ColumnarFailure, type ColumnarReason } from "./task.ts";

/** What the engine's errors begin with, and what they mean to us. Their text quotes the table and goes no further. */
const ENGINE: readonly (readonly [RegExp, ColumnarReason["reason"]])[] = [
  [/^Out of Memory Error: (failed to offload|.*max_temp_directory_size|.*temporary)/s, "disk"],
  [/^Out of Memory Error|bad_alloc|bad allocation/, "memory"],
  [/^(IO Error|Fatal Error).*(No space left|max_temp_directory_size)/s, "disk"],
  [/max_line_size|Maximum line size|maximum_object_size/i, "limit"],
  [
    /^(Invalid|Invalid Input|Conversion|IO|Serialization|Internal|Binder|Parser|Not implemented|Out of Range) Error/i,
    "unreadable",
  ],
];

/** A failure in terms of the task; whatever is not understood is `crashed`. */
export function failureOf(error: unknown): ColumnarReason {
  if (error instanceof ColumnarFailure) return error.detail;
  if ((error as NodeJS.ErrnoException).code === "ENOSPC") return { reason: "disk" };
  const text = error instanceof Error ? error.message : "";
  const position = new RegExp(`${UNREPRESENTABLE}(\\d+):`).exec(text);
  if (position) return { reason: "unrepresentable", column: position[1]! };
  const reason = ENGINE.find(([pattern]) => pattern.test(text))?.[1] ?? "crashed";
  const line = /CSV Error on Line: (\d+)/.exec(text)?.[1];
  return {
    reason,
    ...(reason === "limit" ? { limit: "recordBytes" as const } : {}),
    ...(line === undefined ? {} : { line: Number(line) }),
  };
}

/** Runs `work` and names the column, which the engine knows by position only. */
export async function namingColumns<T>(columns: readonly { readonly name: string }[], work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const failure = failureOf(error);
    const named = failure.column === undefined ? undefined : columns[Number(failure.column)]?.name;
    throw new ColumnarFailure({ ...failure, ...(named === undefined ? {} : { column: named }) });
  }
}
