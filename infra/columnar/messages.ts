import type { ColumnarReason, ColumnarTask, RowsWritten, TableDescription } from "./task.ts";

/** What the child is told, once. */
export interface ColumnarOrder {
  readonly task: ColumnarTask;
  /** Absolute. */
  readonly folder: string;
  /** For the whole child, its engine and its runtime together. */
  readonly memoryLimitBytes: number;
  /** Most that the engine may spill into the folder. */
  readonly spillLimitBytes: number;
}

/** What the child says, once, at its end. */
export type ColumnarReport =
  | { readonly ok: true; readonly answer: RowsWritten | TableDescription }
  | { readonly ok: false; readonly failure: ColumnarReason };

/** Where the engine puts what does not fit into its memory, within the folder. */
export const SPILL_FOLDER = "spill";
