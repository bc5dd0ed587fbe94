import type { Client } from "./client.ts";
import { followToEnd } from "./follow.ts";
import { note } from "./progress.ts";

const CANCEL = `mutation cancel($input: CancelWorkloadInput!) { cancelWorkload(input: $input) { workload { status } } }`;

/** Asks for the end of a workload and, unless told otherwise, waits until it is over. */
export async function cancel(client: Client, workloadId: string, wait: boolean): Promise<void> {
  const { cancelWorkload } = await client.query<{ cancelWorkload: { workload: { status: string } } }>(CANCEL, {
    input: { id: workloadId },
  });
  const { status } = cancelWorkload.workload;
  if (["completed", "failed", "cancelled"].includes(status)) return note(`It is ${status}.`);
  note("Cancellation requested.");
  if (wait) note(`It is ${(await followToEnd(client, workloadId)).status}.`);
}
