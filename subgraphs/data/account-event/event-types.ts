/**
 * Every type of event of the account stream, and whether it is sent to the team's webhook too. The set is closed: what is
 * not listed cannot be appended.
 */
export const ACCOUNT_EVENTS = {
  "asset.importing": { delivered: false },
  "asset.ready": { delivered: true },
  "asset.failed": { delivered: true },
  "asset.deleted": { delivered: false },
  "export.running": { delivered: false },
  "export.ready": { delivered: true },
  "export.failed": { delivered: true },
  "load.loading": { delivered: false },
  "load.loaded": { delivered: true },
  "load.failed": { delivered: true },
  "connection.verified": { delivered: false },
  "connection.inactive": { delivered: true },
  "connection.deleted": { delivered: false },
  "connection.live_mode_enabled": { delivered: false },
  "benchmark.completed": { delivered: true },
  "benchmark.failed": { delivered: true },
  "account.spend_cap_reached": { delivered: true },
  "account.payment_required": { delivered: true },
  "webhook.disabled": { delivered: false },
} as const satisfies Readonly<Record<string, { delivered: boolean }>>;

export type AccountEventType = keyof typeof ACCOUNT_EVENTS;

/** Events of other streams that are sent to the team's webhook. What a stream records beyond these stays there. */
const DELIVERED_OF_OTHER_STREAMS: ReadonlySet<string> = new Set([
  "workload.accepted",
  "workload.running",
  "workload.recovering",
  "workload.frozen",
  "workload.resuming",
  "workload.freeze_failed",
  "workload.budget_warning",
  "workload.completed",
  "workload.failed",
  "workload.cancelled",
  "workload.settled",
  "sandbox.terminated",
  "sandbox.failed",
  "sandbox.stuck",
  "sandbox.spend_rate",
  "sandbox.budget_warning",
  "sandbox.agent_run_blocked",
]);

/** Whether an event of this type, of whatever stream, goes to the team's webhook. */
export function isDelivered(type: string): boolean {
  return Object.hasOwn(ACCOUNT_EVENTS, type)
    ? ACCOUNT_EVENTS[type as AccountEventType].delivered
    : DELIVERED_OF_OTHER_STREAMS.has(type);
}
