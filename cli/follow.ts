import { type Client, ClientError } from "./client.ts";
import { brokenStream, Patience } from "./patience.ts";
import { WaitLine } from "./progress.ts";

export interface Ended {
  status: string;
  reason: string | null;
  message: string | null;
  exitCode: number | null;
}

interface State extends Ended {
  waitingReason: string | null;
}

const STATE = `query state($id: ID!) { workload(id: $id) { status reason message exitCode waitingReason } }`;
const EVENTS = `subscription events($id: ID!, $after: Int) { workloadEvents(workloadId: $id, after: $after) { cursor complete } }`;

/** Waits until a workload is over, showing what it does meanwhile, across losses of the platform. */
export async function followToEnd(client: Client, workloadId: string): Promise<Ended> {
  const line = new WaitLine();
  const patience = new Patience();
  let after = 0;
  for (;;) {
    const state = await patience.through(() => stateOf(client, workloadId));
    if (isOver(state.status)) {
      line.clear();
      return state;
    }
    line.show(state.waitingReason ? `${state.status}: waiting (${state.waitingReason})` : state.status);
    after = await nextEvent(client, workloadId, after, patience);
  }
}

export function isOver(status: string): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

export async function stateOf(client: Client, workloadId: string): Promise<State> {
  const { workload } = await client.query<{ workload: State | null }>(STATE, { id: workloadId });
  if (!workload) throw new ClientError(`The team has no workload ${workloadId}. "nodus ls" shows those that it has.`);
  return workload;
}

async function nextEvent(client: Client, workloadId: string, after: number, patience: Patience): Promise<number> {
  try {
    const items = client.subscribe<{ workloadEvents: { cursor: number } }>(EVENTS, { id: workloadId, after });
    for await (const { workloadEvents } of items) {
      patience.answered();
      return workloadEvents.cursor;
    }
    throw brokenStream();
  } catch (error) {
    await patience.bear(error);
  }
  return after;
}
