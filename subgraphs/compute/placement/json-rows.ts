/**
 * Rows that a statement gets as JSON. One row is a source of its own: the planner then knows that there is one, and looks
 * it up by its key with a plan that it keeps. By the length of an array it plans anew each time.
 */

/** SQL: the rows of a parameter that is a JSON array; `as r(column type, …)` has to follow. */
export function manyRows(parameter: string): string {
  return `jsonb_to_recordset(${parameter}::jsonb)`;
}

/** SQL: the one row of a parameter that is a JSON object; `as r(column type, …)` has to follow. */
export function oneRow(parameter: string): string {
  return `jsonb_to_record(${parameter}::jsonb)`;
}

/** Rows for a statement that there is in two kinds, for `manyRows` and for `oneRow`. */
export function manyOrOne(rows: readonly object[]): { many: boolean; json: string } {
  const many = rows.length !== 1;
  return { many, json: JSON.stringify(many ? rows : rows[0]) };
}
