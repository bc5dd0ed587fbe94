import type { Client } from "./client.ts";
import { followToEnd, isOver, stateOf } from "./follow.ts";
import { Patience } from "./patience.ts";
import { note } from "./progress.ts";

const CANCEL = `mutation cancel($input: CancelWorkloadInput!) { cancelWorkload(input: $input) { workload { status } } }`;

/** Asks for the end of a workload and, unless told otherwise, waits until it is over. */
export async function cancel(client: Client, workloadId: string, wait: boolean): Promise<void> {
  const { status } = await stateOf(client, workloadId);
  if (isOver(status)) return note(`${workloadId} is ${status} already: there is nothing to cancel.`);
  const later = "whether it was asked to end is not known, and the same command may be given again";
  await new Patience({ later }).answerTo(() => client.query(CANCEL, { input: { id: workloadId } }));
  note(`${workloadId} was asked to end.`);
  if (!wait) return;
  const end = await followToEnd(client, workloadId);
  note(`${workloadId} is ${end.status}${end.status === "cancelled" ? "" : ": it ended before it could be cancelled"}.`);
}
