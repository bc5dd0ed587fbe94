/**
 * The process of one columnar task. It is told the task over its channel, answers once, and does not outlive the channel:
 * with its parent gone it kills itself, whatever the engine is doing just then.
 */
import { csvToParquet } from "./csv-to-parquet.ts";
import { describe } from "./describe.ts";
import { Engine } from "./engine.ts";
import { failureOf } from "./failure.ts";
import type { ColumnarOrder, ColumnarReport } from "./messages.ts";
import { rewrite, toCsv } from "./to-csv.ts";

const MEMORY_LOOK_MS = 25;

process.once("disconnect", die);
process.once("message", (order) => void work(order as ColumnarOrder));

async function work(order: ColumnarOrder): Promise<void> {
  watchMemory(order.memoryLimitBytes);
  try {
    report({ ok: true, answer: await perform(order) });
  } catch (error) {
    report({ ok: false, failure: failureOf(error) });
  }
}

async function perform(order: ColumnarOrder) {
  const { task } = order;
  const engine = await Engine.open(order);
  if (task.kind === "csvToParquet") return csvToParquet(engine, task);
  if (task.kind === "rewrite") return rewrite(engine, task);
  return task.kind === "describe" ? describe(engine, task) : toCsv(engine, task);
}

/** The engine keeps to its own limit; what it takes beside that is seen here. */
function watchMemory(limitBytes: number): void {
  setInterval(() => {
    if (process.memoryUsage.rss() > limitBytes) report({ ok: false, failure: { reason: "memory" } });
  }, MEMORY_LOOK_MS);
}

function report(said: ColumnarReport): void {
  process.send?.(said, undefined, undefined, die);
}

/** At once: an orderly exit would wait for the engine's threads. */
function die(): void {
  process.kill(process.pid, "SIGKILL");
}
