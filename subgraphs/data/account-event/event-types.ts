const HOUR_MS = 3_600_000;

interface AccountEventKind {
  /** Whether it is sent to the team's webhook too. */
  delivered: boolean;
  /** After one of the type no other is recorded for this long: what clients cause by repeating a request. */
  restMs?: number;
}

/** Every type of event of the account stream. The set is closed: what is not listed cannot be appended. */
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
  "account.spend_cap_reached": { delivered: true, restMs: HOUR_MS },
  "account.payment_required": { delivered: true, restMs: HOUR_MS },
  "webhook.disabled": { delivered: false },
} as const satisfies Readonly<Record<string, AccountEventKind>>;

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

export function isAccountEvent(type: string): type is AccountEventType {
  return Object.hasOwn(ACCOUNT_EVENTS, type);
}

/** How long a type rests after one of it; null when it does not. */
export function restOf(type: AccountEventType): number | null {
  return (ACCOUNT_EVENTS[type] as AccountEventKind).restMs ?? null;
}

/** Whether an event of this type, of whatever stream, goes to the team's webhook. */
export function isDelivered(type: string): boolean {
  return isAccountEvent(type) ? ACCOUNT_EVENTS[type].delivered : DELIVERED_OF_OTHER_STREAMS.has(type);
}
