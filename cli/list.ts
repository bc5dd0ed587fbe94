import type { Client } from "./client.ts";
import { table, timeText } from "./table.ts";

interface Row {
  id: string;
  name: string;
  status: string;
  waitingReason: string | null;
  createdAt: string;
  meter: { totalNowUsd: number };
}

const LIST = `query list($first: Int, $status: [String!]) {
  workloads(first: $first, status: $status) {
    nodes { id name status waitingReason createdAt meter { totalNowUsd } }
    pageInfo { hasNextPage }
  }
}`;

/** Prints workloads as a table, newest first. */
export async function list(client: Client, options: { status?: string[]; limit: number }): Promise<void> {
  const { workloads } = await client.query<{ workloads: { nodes: Row[]; pageInfo: { hasNextPage: boolean } } }>(LIST, {
    first: options.limit,
    status: options.status,
  });
  const cells = workloads.nodes.map((w) => [
    w.id,
    w.waitingReason ? `${w.status} (${w.waitingReason})` : w.status,
    `$${w.meter.totalNowUsd.toFixed(6)}`,
    timeText(new Date(w.createdAt)),
    w.name,
  ]);
  process.stdout.write(table([["ID", "STATUS", "COST", "CREATED", "NAME"], ...cells]));
  if (workloads.pageInfo.hasNextPage) process.stderr.write("There are more; raise --limit.\n");
}
