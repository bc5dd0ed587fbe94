import { ColumnarFailure, type TableLimits } from "./task.ts";

/** Fails when there are no or too many columns, or one has no name of its own. */
export function requireColumns(columns: readonly { readonly name: string }[], limits: TableLimits): void {
  if (columns.length > limits.columns)
    throw new ColumnarFailure({ reason: "limit", limit: "columns", count: columns.length });
  const seen = new Set<string>();
  for (const { name } of columns) {
    if (name === "" || seen.has(name)) throw new ColumnarFailure({ reason: "column_names", column: name });
    seen.add(name);
  }
}
