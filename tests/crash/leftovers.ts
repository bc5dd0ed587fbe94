import { existsSync, globSync, readdirSync } from "node:fs";
import path from "node:path";
import { hostFolder } from "../../infra/runner/host/host-folder.ts";
import { hostAgentName } from "../../infra/runner/isolation/abandoned-groups.ts";
import { processesHolding, processesWith } from "../support/process-table.ts";
import { until } from "../support/until.ts";

/** How long what has ended may take to be cleared away. */
const CLEARED_MS = 45_000;

/**
 * What a platform still holds on its machine although all its work has settled: folders of orders with their spools,
 * guests and their control groups. Empty when nothing is left.
 */
export async function leftOfWork(dataDir: string): Promise<string[]> {
  const folder = hostFolder(dataDir);
  const left = () => [
    ...entriesOf(path.join(folder, "orders")).map((name) => `order's folder ${name}`),
    ...controlGroups(folder, "/*/"),
    ...living(path.join(folder, "orders")),
    ...holding(path.join(folder, "pipes")),
  ];
  await until("the work's traces are gone", () => left().length === 0, { timeoutMs: CLEARED_MS, everyMs: 100 }).catch(
    () => {}, // they are told by name
  );
  return left();
}

/** Where a platform leaves something, looked up while it lives; afterwards, what is there although it was disposed of. */
export function tracesOf(dataDir: string): () => string[] {
  const folder = hostFolder(dataDir);
  return () => [
    ...living(dataDir),
    ...holding(dataDir),
    ...controlGroups(folder, "/"),
    ...[dataDir, folder].filter((place) => existsSync(place)).map((place) => `folder ${place}`),
  ];
}

function living(word: string): string[] {
  return processesWith(word).map(({ pid, commandLine }) => `process ${pid} (${commandLine})`);
}

function holding(folder: string): string[] {
  return processesHolding(folder).map(
    ({ pid, commandLine }) => `process ${pid} (${commandLine}) holds files of it open`,
  );
}

function entriesOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** A host agent's control groups bear the hash of its folder, in whichever version and below whichever group. */
function controlGroups(folder: string, below: string): string[] {
  const name = `nodus-${hostAgentName(folder)}`;
  return globSync([
    `/sys/fs/cgroup/${name}${below}`,
    `/sys/fs/cgroup/*/${name}${below}`,
    `/sys/fs/cgroup/*/*/*/${name}${below}`,
  ]).map((group) => `control group ${group}`);
}
