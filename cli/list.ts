import { type Client, ClientError } from "./client.ts";

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
export async function list(client: Client, options: { status?: string; limit: string }): Promise<void> {
  const first = Number(options.limit);
  if (!Number.isInteger(first) || first < 1 || first > 100)
    throw new ClientError("--limit must be a whole number from 1 to 100.");
  const { workloads } = await client.query<{ workloads: { nodes: Row[]; pageInfo: { hasNextPage: boolean } } }>(LIST, {
    first,
    status: options.status?.split(",").map((word) => word.trim()),
  });
  const cells = workloads.nodes.map((w) => [
    w.id,
    w.waitingReason ? `${w.status} (${w.waitingReason})` : w.status,
    `$${w.meter.totalNowUsd.toFixed(6)}`,
    w.createdAt,
    w.name,
  ]);
  process.stdout.write(table([["ID", "STATUS", "COST", "CREATED", "NAME"], ...cells]));
  if (workloads.pageInfo.hasNextPage) process.stderr.write("There are more; raise --limit.\n");
}

function table(rows: string[][]): string {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, i) => cell.padEnd(widths[i]!))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}
