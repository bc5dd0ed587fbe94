import type { Tx } from "../infra/db/database.ts";
import type { OfferedEvent } from "../infra/db/offered-event.ts";
import { runResults } from "../subgraphs/compute/output/run-results.port.ts";
import { takeOfferedEvents } from "../subgraphs/data/account-event/append-account-event.ts";
import { takeRunEvent } from "../subgraphs/data/load/open-load.ts";

/** What every event of every domain leads to, in its own transaction. */
export async function takeEvents(tx: Tx, events: readonly OfferedEvent[]): Promise<void> {
  for (const event of events) await takeRunEvent(tx, event, runResults);
  await takeOfferedEvents(tx, events); // takes the lock of the team's stream, which comes last
}
