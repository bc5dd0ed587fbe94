import type { Outcome } from "./bench-row.ts";

const COLUMNS = ["what", "Nodus", "baseline", "ratio", "CPU µs", "aim", "met"] as const;

/** The outcomes as a table, notes below it. */
export function renderTable(outcomes: readonly Outcome[]): string {
  const rows = outcomes.map((outcome) => [
    outcome.what,
    outcome.nodus,
    outcome.baseline,
    outcome.ratio,
    outcome.cpu,
    outcome.aim || "-",
    outcome.met === null ? "-" : outcome.met ? "yes" : "NO",
  ]);
  const widths = COLUMNS.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |`;
  return [
    line(COLUMNS),
    line(widths.map((width) => "-".repeat(width))),
    ...rows.map(line),
    "",
    ...outcomes.map(({ what, note }) => `${what}: ${note}`),
    "",
  ].join("\n");
}
