import type { Database, Queryer } from "../../../infra/db/database.ts";
import { Attempt, Placement } from "../placement/placement.entity.ts";
import { Stage } from "../stage/stage.entity.ts";
import { Workload } from "../workload/workload.entity.ts";
import type { LifecycleDeps } from "./lifecycle-deps.ts";
import { boundsOf, type LockedOrder, mayAct } from "./locked-order.ts";
import { ORDER_OVER, OVERTAKEN, refusal, type Session, type SessionRefusal, UNKNOWN_ORDER } from "./session.ts";

/** An order as its rows are, nothing locked. */
type ReadOrder = LockedOrder;

/** Makes `session` the order's own, for whoever has the token of which `tokenHash` is. */
export interface Exchange {
  session: Session;
  tokenHash: string;
}

/**
 * Exchanges an order's token and renews its lease. It needs the rows of the placement and the attempt and no other, so
 * that a host begins while its team's account or workload is held; while these two are, it waits in its team's turn, and
 * fails as `isWaitForOthersOver` tells.
 */
export async function exchangeToken(
  { db, clock, settings }: Pick<LifecycleDeps, "db" | "clock" | "settings">,
  exchange: Exchange,
): Promise<ReadOrder | SessionRefusal> {
  const now = clock.now();
  const { placementId, orderId, sessionHash } = exchange.session;
  const leaseExpiresAt = new Date(now.getTime() + settings.leaseMs);
  const values = [placementId, orderId, exchange.tokenHash, sessionHash, now, leaseExpiresAt];
  const take = (q: Queryer, statement: string) => q.sql(statement, values);
  const taken = await take(db, TAKE_IF_FREE);
  let found = await whatCameOfIt(db, exchange, now);
  if (!found && taken.length === 0) {
    await db.command((tx) => take(tx, TAKE), { ...boundsOf(exchange.session), comesAgain: true });
    found = await whatCameOfIt(db, exchange, now);
  }
  // A later exchange of the same token replaced this one: it is the host's by now, and must be neither replaced nor ended.
  return !found || (taken.length > 0 && "refused" in found && found.refused === "bad_token") ? OVERTAKEN : found;
}

/** Null when nothing speaks against the exchange, and yet it was not made. */
async function whatCameOfIt(
  db: Database,
  { session, tokenHash }: Exchange,
  now: Date,
): Promise<ReadOrder | SessionRefusal | null> {
  const [workload, placement, stage, attempt] = await Promise.all([
    db.row(Workload, "where t.id = $1", [session.workloadId]),
    db.row(Placement, "where t.id = $1", [session.placementId]),
    db.row(Stage, "where t.id = (select stage_run_id from compute.placement where id = $1)", [session.placementId]),
    db.row(Attempt, "where t.id = $1", [session.orderId]),
  ]);
  if (!workload || !placement || !stage || !attempt) return UNKNOWN_ORDER;
  if (!mayAct(placement, attempt)) return ORDER_OVER;
  if (attempt.sessionHash === session.sessionHash) return { workload, placement, stage, attempt };
  if (attempt.tokenHash !== tokenHash || attempt.tokenExpiresAt <= now)
    return refusal("bad_token", "The order's token is wrong or too old.");
  return placement.appliedSeq > 0 ? refusal("bad_token", "The order's token was used up.") : null;
}

/**
 * Until the first record is applied. `$1` placement, `$2` order, `$3` hash of the token, `$4` hash of the session, `$5` now,
 * `$6` end of the lease.
 */
const taking = (locks: string) => `with mine as materialized (
    select p.id as placement_id, a.id as order_id
    from compute.placement p join compute.attempt a on a.id = p.order_id
    where p.id = $1 and a.id = $2 and p.state in ('provisioning', 'running') and p.applied_seq = 0
      and a.state in ('launching', 'booting', 'running') and a.token_hash = $3 and a.token_expires_at > $5
    for no key update of p, a ${locks}),
  heard as (
    update compute.placement p set last_beat_at = $5, lease_expires_at = $6 from mine where p.id = mine.placement_id)
  update compute.attempt a set session_hash = $4, state = case when a.state = 'launching' then 'booting' else a.state end
  from mine where a.id = mine.order_id returning a.id`;

const TAKE = taking("");
const TAKE_IF_FREE = taking("skip locked");
