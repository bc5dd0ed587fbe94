/**
 * A platform in miniature: runs one columnar task that never ends by itself, and tells the child's process id. Its death
 * is the test's doing.
 */
import { runColumnar } from "../../infra/columnar/run-columnar.ts";

await runColumnar(
  {
    kind: "describe",
    input: "endless",
    format: "parquet",
    limits: { rows: 1, columns: 1, recordBytes: 1, rowGroupBytes: 1 },
  },
  {
    folder: process.argv[2] ?? "",
    memoryLimitBytes: 320 * 1024 * 1024,
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    onChild: (pid) => void process.stdout.write(`${pid}\n`),
  },
);
