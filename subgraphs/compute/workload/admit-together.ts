import { instance } from "../../../infra/db/columns.ts";
import type { Database, Tx } from "../../../infra/db/database.ts";
import type { IdempotencyKey } from "../../../infra/db/idempotency.ts";
import { OUTBOX_TOPIC } from "../../../infra/db/outbox.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { Micros } from "../../../infra/kernel/micros.ts";
import { letsIn } from "../account/admission.ts";
import { ACCEPTED_COLUMNS, type AcceptedRow, acceptedOffer, acceptFrom } from "./accepted-rows.ts";
import { Workload } from "./workload.entity.ts";

/** An admission that waits for nothing but its key and its account. */
export interface Admittee {
  readonly row: AcceptedRow;
  readonly key: Pick<IdempotencyKey, "id" | "fingerprint">;
  /** Credit that has to be free. */
  readonly leastMicros: Micros;
  /** Of the month in which it is admitted. */
  readonly monthStart: Date;
}

/**
 * Admits workloads of any teams in one transaction: they share its round trips and its flush to disk, and a team's
 * account is changed once for all of its own. Answers each one's workload, or null where it was not admitted and nothing
 * of it was written: its key was used before or twice in the group, or its account does not let in all of its team's.
 * Those are to be admitted one by one, which tells why. Fails whole when it would have to wait long for a lock, so that
 * nobody waits for another team's.
 */
export async function admitTogether(db: Database, group: readonly Admittee[]): Promise<(Workload | null)[]> {
  const ofKey = new Map(group.map((admittee) => [admittee.key.id, admittee]));
  const bounds = { lockWaitMs: LIMITS.groupLockMs };
  const admitted = await db.command((tx) => admitGroup(tx, [...ofKey.values()]), bounds);
  return group.map(({ row }) => admitted.get(row.id) ?? null);
}

async function admitGroup(tx: Tx, group: readonly Admittee[]): Promise<Map<string, Workload>> {
  const rows = await tx.sql<Record<string, unknown>>(ADMIT_GROUP, [JSON.stringify(group.map(asRow))]);
  const admitted = new Map(rows.map((row) => instance(Workload, row)).map((workload) => [workload.id, workload]));
  const accepted = group.map(({ row }) => row).filter(({ id }) => admitted.has(id));
  if (accepted.length > 0) {
    await tx.offer(...accepted.map(acceptedOffer));
    tx.wake(OUTBOX_TOPIC);
  }
  return admitted;
}

function asRow({ row, key, leastMicros, monthStart }: Admittee) {
  return {
    ...row,
    ...{
      request_key: key.id,
      fingerprint: key.fingerprint,
      least_micros: String(leastMicros),
      month_start: monthStart,
    },
  };
}

/**
 * Accounts are locked in the order of their ids: two groups that share teams never wait for each other. So are keys; one
 * that another process is just using fails the statement, and none is ever overwritten.
 */
const ADMIT_GROUP = `with asked as (
    select * from jsonb_to_recordset($1::jsonb) as r(${ACCEPTED_COLUMNS}, request_key text, fingerprint text,
      least_micros bigint, month_start timestamptz)),
  fresh as (
    select * from asked
    where not exists (select 1 from infra.idempotency_key k where k.id = asked.request_key)),
  team as (
    select tenant_id, count(*)::int as n, max(least_micros) as least_micros, min(month_start) as month_start
    from fresh group by tenant_id),
  locked as (
    select id from compute.account where id in (select tenant_id from team) order by id for no key update),
  admitted as (
    update compute.account a set active_runs = a.active_runs + team.n
    from team join locked on locked.id = team.tenant_id
    where a.id = team.tenant_id
      and ${letsIn({ count: "team.n", leastMicros: "team.least_micros", monthStart: "team.month_start" })}
    returning a.id),
  entering as (
    select * from fresh where tenant_id in (select id from admitted)),
  keys as (
    insert into infra.idempotency_key (id, tenant_id, fingerprint, object_id, created_at)
    select request_key, tenant_id, fingerprint, id, accepted_at from entering order by request_key),
  ${acceptFrom("entering")}
  select * from accepted`;
