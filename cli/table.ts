/** Rows as columns that stand below each other, two blanks apart; the first row is the heading. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  const lines = rows.map((row) => row.map((cell, i) => cell.padEnd(widths[i]!)).join("  "));
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

/** An instant as a table shows it: UTC, to the second. */
export function timeText(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}
