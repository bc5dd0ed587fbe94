import type { WaitingReason } from "../subgraphs/compute/placement/waiting.ts";
import type { Client } from "./client.ts";
import { stateOf } from "./follow.ts";
import { brokenStream, Patience } from "./patience.ts";

/** What is to be done about each reason to wait, if anything is. */
const ADVICE: Record<WaitingReason, string> = {
  no_matching_offer:
    "No machine fits: ask for less, for another GPU, or with --cpu for a machine without one. Without --cpu a workload wants a GPU, unless the platform runs with NODUS_CPU_FALLBACK=1.",
  no_capacity: "Every machine that fits is busy: it starts when one has room.",
  offers_quarantined: "What fits failed to start lately and is tried again by itself.",
  supplier_silent: "The supplier of what fits does not answer: see /readyz of the platform.",
  region_not_available: "Nothing that fits is in the regions that it may run in.",
  isolated_execution_unavailable:
    "The machines that fit can't isolate guests: what is missing stands in the platform's start message.",
  payment_method_required: "The team has no payment method: nodus accounts set --payment-method on.",
  insufficient_credit: "The team has too little credit: nodus accounts credit.",
  monthly_cap: "The team's monthly cap is reached: nodus accounts set --monthly-cap.",
  workload_budget: "What fits costs more than the workload may: submit it with a higher --max-cost.",
};

interface WaitingPayload {
  reason: string;
  /** When the wait began. */
  since: string;
  /** Offers that were passed over, by reason. */
  rejected?: Record<string, number>;
}

/** What a person at the terminal is told of a wait. */
export function waitingSentence({ reason, rejected = {} }: Omit<WaitingPayload, "since">): string {
  const passedOver = Object.entries(rejected).map(([why, count]) => `${count} by ${why}`);
  const offers = passedOver.length > 0 ? ` (offers passed over: ${passedOver.join(", ")})` : "";
  const advice = Object.hasOwn(ADVICE, reason) ? ` ${ADVICE[reason as WaitingReason]}` : ""; // a later platform has others
  return `Waiting: ${reason}${offers}.${advice}`;
}

const EVENTS = `subscription waits($id: ID!, $after: Int) {
  workloadEvents(workloadId: $id, after: $after) { cursor complete event { type payload } }
}`;
const SINCE = `query since($id: ID!) { workload(id: $id) { waitingSince } }`;

interface Item {
  cursor: number;
  complete: boolean;
  event: { type: string; payload: WaitingPayload } | null;
}

/**
 * Tells each reason for which a workload waits, once, until `stop` or the workload's end. Waits that were over before
 * are passed. Throws `ClientError` when the platform refuses.
 */
export async function tellWaits(
  client: Client,
  workloadId: string,
  tell: (sentence: string) => void,
  stop: AbortSignal,
  // Whoever reads the log beside it tells of losses; and the command may have been one that is not to be given again.
  patience = new Patience({ tell: () => {}, later: `nodus logs -f ${workloadId} tells them again` }),
): Promise<void> {
  const told = new Set<string>();
  const over = new Set<string>();
  let after = 0;
  const take = async ({ type, payload }: NonNullable<Item["event"]>) => {
    if (type !== "workload.waiting" || told.has(payload.reason) || over.has(payload.since)) return;
    const { workload } = await client.query<{ workload: { waitingSince: string | null } }>(SINCE, { id: workloadId });
    const since = workload.waitingSince;
    if (since === null || Date.parse(since) !== Date.parse(payload.since)) return void over.add(payload.since);
    told.add(payload.reason);
    if (!stop.aborted) tell(waitingSentence(payload));
  };
  while (!stop.aborted) {
    const items = client.subscribe<{ workloadEvents: Item }>(EVENTS, { id: workloadId, after });
    const end = () => void items.return?.();
    stop.addEventListener("abort", end);
    try {
      for await (const { workloadEvents: item } of items) {
        if (item.complete) return;
        if (item.event) await take(item.event);
        after = item.cursor;
        patience.answered();
      }
      throw brokenStream();
    } catch (error) {
      if (stop.aborted) return;
      await patience.bear(error, stop);
      // What follows may be silent for hours: this answer is what tells that the loss is over.
      await patience
        .through(() => stateOf(client, workloadId), stop)
        .catch((lost: unknown) => {
          if (!stop.aborted) throw lost;
        });
    } finally {
      stop.removeEventListener("abort", end);
    }
  }
}
