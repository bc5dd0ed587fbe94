import type { AwaitedTime } from "../../infra/db/draw-in.ts";
import { LIMITS } from "../../infra/kernel/limits.ts";
import { CLAIM_MS } from "./delivery/attempt.commands.ts";
import { QUEUED_MS } from "./delivery/queue-deliveries.ts";
import { RETRY_WAITS_MS } from "./delivery/retry-schedule.ts";

/** The longest wait after so many tries; what was not tried yet is due at once. */
const RETRY_WAIT_MS = `case when t.tries = 0 then 0
  else (array[${RETRY_WAITS_MS.join(", ")}])[least(t.tries, ${RETRY_WAITS_MS.length})] end`;

const DELIVERY = { table: "data.webhook_delivery", key: "id", where: "t.state = 'pending'" };
const EXPORT = { table: "data.query_export", key: "id" };
/** Exports in a state in which none is cleaned: saying so lets the index of unfinished ones be used. */
const exported = (states: string) => `t.cleaned_at is null and t.state in (${states})`;
const LOAD = { table: "data.sink_load", key: "id" };
const IMPORT = { table: "data.asset_import", key: "asset_id", where: "true" };

/** A lease, or a deadline, begins anew: whoever holds it may be alive. */
const anew = (ms: number) => ({ farthestMs: ms, graceMs: ms });
/** When something was last put into the queue, or heard of. */
const past = { farthestMs: 0, graceMs: 0 };

/** The times that data's reconcilers and jobs wait for. */
export const DATA_TIMES: readonly AwaitedTime[] = [
  { ...DELIVERY, column: "due_at", farthestMs: RETRY_WAIT_MS, graceMs: 0 },
  { ...DELIVERY, column: "queued_until", farthestMs: QUEUED_MS, graceMs: 0 },
  { ...DELIVERY, column: "claimed_until", ...anew(CLAIM_MS) },
  { ...EXPORT, column: "lease_until", where: exported("'running'"), ...anew(LIMITS.exportLeaseMs) },
  { ...EXPORT, column: "queued_at", where: exported("'pending'"), ...past },
  { ...EXPORT, column: "deadline_at", where: exported("'pending', 'running'"), ...anew(LIMITS.exportMs) },
  { ...LOAD, column: "lease_until", where: "t.state = 'loading'", ...anew(LIMITS.loadLeaseMs) },
  { ...LOAD, column: "queued_at", where: "t.state = 'pending' or t.run_state = 'due'", ...past },
  { ...IMPORT, column: "lease_until", ...anew(LIMITS.assetImportLeaseMs) },
  { ...IMPORT, column: "deadline_at", ...anew(LIMITS.assetImportMs) },
  { table: "data.asset_upload", key: "id", column: "seen_at", where: "true", ...past },
  {
    ...{ table: "data.asset_object", key: "sha256", column: "removing_since" },
    ...{ where: "t.removing_since is not null", ...past },
  },
];
