import type { OfferedEvent } from "../../../infra/db/offered-event.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";

/** Members that receivers find beside the payload, wherever the event has them. */
const TOP_LEVEL = [
  "workload_id",
  "sandbox_id",
  "asset_id",
  "benchmark_id",
  "status",
  "state",
  "revision",
  "generation",
] as const;

/** The text that is sent. A payload that would make it too large is left out, and `payload_omitted` says so. */
export function deliveryBody(deliveryId: string, event: OfferedEvent): string {
  const known: Readonly<Record<string, unknown>> = { ...event.payload, ...event.subject };
  const head: Record<string, unknown> = {
    delivery_id: deliveryId,
    event_id: event.eventId,
    event_type: event.type,
    created_at: event.now.toISOString(),
    tenant: event.tenantId,
  };
  for (const member of TOP_LEVEL) {
    const value = known[member];
    if (value !== undefined && value !== null) head[member] = value;
  }
  const whole = JSON.stringify({ ...head, payload: event.payload });
  if (Buffer.byteLength(whole) <= LIMITS.webhookBodyBytes) return whole;
  return JSON.stringify({ ...head, payload: {}, payload_omitted: true });
}
