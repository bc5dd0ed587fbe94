import { timingSafeEqual } from "node:crypto";
import type { CommandBounds, Tx } from "../../../infra/db/database.ts";
import { isId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { type Allowance, type OrderSpec, RUNNER_PROTOCOL } from "../../../infra/runner/protocol.ts";
import { hashToken } from "../placement/order-token.ts";
import { Attempt, Placement } from "../placement/placement.entity.ts";
import { Stage } from "../stage/stage.entity.ts";
import { Workload } from "../workload/workload.entity.ts";
import { finishWorkload } from "./finish.commands.ts";
import { allowanceOf, extendFunding, warnOfBudget } from "./funding.commands.ts";
import type { LifecycleDeps } from "./lifecycle-deps.ts";
import { orderSpec } from "./order-spec.ts";

/** The order that a host speaks for, after its token or session was checked. */
export interface Session {
  orderId: string;
  placementId: string;
  workloadId: string;
  tenantId: string;
  /** SHA-256 of the session's text: a later exchange of the token replaces it, and this one is fenced. */
  sessionHash: string;
}

/** Why a host is turned away; `fenced` and `unknown` tell it to drop the guest and everything of it. */
export type SessionRefusal = { refused: "fenced" | "unknown" | "bad_token"; message: string };

export type Opened = {
  session: Session;
  token: string;
  spec: OrderSpec;
  secrets: Record<string, string>;
  allowance: Allowance;
};

/**
 * Exchanges the one-time token for a session. Until the first record is applied the exchange may be repeated, because
 * its answer may have been lost; the later session then replaces the earlier one.
 */
export async function openSession(
  deps: LifecycleDeps,
  open: { orderId: string; token: string; protocol: number },
): Promise<Opened | SessionRefusal> {
  if (open.protocol !== RUNNER_PROTOCOL)
    return { refused: "bad_token", message: `This deployment speaks runner protocol ${RUNNER_PROTOCOL}.` };
  const now = deps.clock.now();
  const token = Buffer.from(deps.random(32)).toString("base64url");
  const opened = await deps.db.command(async (tx) => {
    const found = await lockOrder(tx, open.orderId);
    if ("refused" in found) return found;
    const { workload, placement, attempt, stage } = found;
    if (!attempt.tokenHash || !equal(attempt.tokenHash, hashToken(open.token)) || attempt.tokenExpiresAt <= now)
      return refusal("bad_token", "The order's token is wrong or too old.");
    if (placement.appliedSeq > 0) return refusal("bad_token", "The order's token was used up.");
    attempt.sessionHash = hashToken(token);
    await tx.sql(
      "update compute.attempt set session_hash = $2, state = case when state = 'launching' then 'booting' else state end where id = $1",
      [attempt.id, attempt.sessionHash],
    );
    await renewLease(tx, placement, deps.settings.leaseMs, now);
    return {
      session: sessionOf(placement, attempt),
      token,
      spec: orderSpec(stage, placement, attempt, deps.settings),
      secretEnv: stage.spec.secretEnv,
      allowance: allowanceOf(placement, workload, deps.settings, now),
    };
  });
  if ("refused" in opened) return opened;
  const { secretEnv, ...rest } = opened;
  try {
    return { ...rest, secrets: await secretValues(deps, opened.session, secretEnv) };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return failForSecrets(deps, opened.session, error);
  }
}

/** Secrets that can never be read again would keep the order waiting for ever: the workload fails and says why. */
async function failForSecrets(deps: LifecycleDeps, session: Session, refused: Refused): Promise<SessionRefusal> {
  const now = deps.clock.now();
  const { workloadId } = session;
  await deps.db.command((tx) =>
    finishWorkload(tx, { workloadId, event: "fail", reason: "input_unavailable", message: refused.message, now }),
  );
  return refusal("fenced", refused.message);
}

async function secretValues(
  deps: LifecycleDeps,
  session: Session,
  secretEnv: Record<string, string>,
): Promise<Record<string, string>> {
  const names = Object.entries(secretEnv);
  if (names.length === 0) return {};
  const revealed = await deps.secrets.reveal(deps.db, { tenantId: session.tenantId, holderId: session.workloadId });
  const values = new Map(revealed.map((s) => [s.name, s.value]));
  return Object.fromEntries(
    names.map(([env, name]) => {
      const value = values.get(name);
      if (value === undefined) throw new Error(`the pinned secret of ${env} is missing`);
      return [env, value];
    }),
  );
}

export type Resumed = { session: Session; ackSeq: number; allowance: Allowance };

/** Takes a session up again after a reconnect. */
export async function resumeSession(
  deps: LifecycleDeps,
  resume: { orderId: string; session: string },
): Promise<Resumed | SessionRefusal> {
  const now = deps.clock.now();
  return deps.db.command(async (tx) => {
    const found = await lockOrder(tx, resume.orderId);
    if ("refused" in found) return found;
    const { workload, placement, attempt } = found;
    if (!attempt.sessionHash || !equal(attempt.sessionHash, hashToken(resume.session))) return NOT_THE_LATEST;
    await renewLease(tx, placement, deps.settings.leaseMs, now);
    return {
      session: sessionOf(placement, attempt),
      ackSeq: placement.appliedSeq,
      allowance: allowanceOf(placement, workload, deps.settings, now),
    };
  });
}

/** A heartbeat: renews the lease, pays for the next window, and tells what is wanted. */
export async function beat(deps: LifecycleDeps, session: Session): Promise<Allowance | SessionRefusal> {
  const now = deps.clock.now();
  return deps.db.command(async (tx) => {
    const found = await lockSession(tx, session);
    if ("refused" in found) return found;
    const { workload, placement } = found;
    await renewLease(tx, placement, deps.settings.leaseMs, now);
    await warnOfBudget(tx, workload, placement, now);
    if (placement.want === "run")
      placement.heldMicros = await extendFunding(tx, workload, placement, deps.settings, now);
    return allowanceOf(placement, workload, deps.settings, now);
  }, boundsOf(session));
}

/** A host waits for the answer, and its team may wait for rows that somebody holds, as long as others need not. */
export function boundsOf({ tenantId }: Session): CommandBounds {
  return { teamId: tenantId, lockWaitMs: LIMITS.requestLockWaitMs };
}

/** What is wanted of an order now, without renewing anything; for pushing a change to its host. */
export async function currentAllowance(deps: LifecycleDeps, session: Session): Promise<Allowance | SessionRefusal> {
  const now = deps.clock.now();
  const placement = await deps.db.row(Placement, "where t.id = $1", [session.placementId]);
  const workload = await deps.db.row(Workload, "where t.id = $1", [session.workloadId]);
  if (!placement || !workload) return refusal("unknown", "The order is not known.");
  if (!live(placement, session.orderId)) return refusal("fenced", "The order is over.");
  const attempt = await deps.db.row(Attempt, "where t.id = $1", [session.orderId]);
  if (attempt?.sessionHash !== session.sessionHash) return NOT_THE_LATEST;
  return allowanceOf(placement, workload, deps.settings, now);
}

export interface LockedOrder {
  workload: Workload;
  stage: Stage;
  placement: Placement;
  attempt: Attempt;
}

/** As `lockOrder`, for the holder of a session: one that a later exchange of the token replaced is fenced. */
export async function lockSession(tx: Tx, session: Session): Promise<LockedOrder | SessionRefusal> {
  const found = await lockOrder(tx, session.orderId);
  return "refused" in found || found.attempt.sessionHash === session.sessionHash ? found : NOT_THE_LATEST;
}

/** Locks the rows of an order that may still act; a stale or unknown order is refused. */
async function lockOrder(tx: Tx, orderId: string): Promise<LockedOrder | SessionRefusal> {
  // Nor may every text be asked of the database.
  if (!isId("order", orderId)) return refusal("unknown", "The order is not known.");
  const [ids] = await tx.sql<{ workload_id: string; placement_id: string }>(
    "select workload_id, placement_id from compute.attempt where id = $1",
    [orderId],
  );
  if (!ids) return refusal("unknown", "The order is not known.");
  // Asked for together and answered in this order, so the locks are taken in it and the rest is read under them.
  const [workload, placement, stage, attempt] = await Promise.all([
    tx.row(Workload, "where t.id = $1 for update", [ids.workload_id]),
    tx.row(Placement, "where t.id = $1 for update", [ids.placement_id]),
    tx.row(Stage, "where t.id = (select stage_run_id from compute.placement where id = $1)", [ids.placement_id]),
    tx.row(Attempt, "where t.id = $1", [orderId]),
  ]);
  if (!workload || !placement || !stage || !attempt) return refusal("unknown", "The order is not known.");
  if (!live(placement, orderId) || !["launching", "booting", "running"].includes(attempt.state))
    return refusal("fenced", "The order is over.");
  return { workload, stage, placement, attempt };
}

function live(placement: Placement, orderId: string): boolean {
  return placement.orderId === orderId && (placement.state === "provisioning" || placement.state === "running");
}

/** The host was heard. */
async function renewLease(tx: Tx, placement: Placement, leaseMs: number, now: Date): Promise<void> {
  placement.lastBeatAt = now;
  placement.leaseExpiresAt = new Date(now.getTime() + leaseMs);
  await tx.sql("update compute.placement set last_beat_at = $2, lease_expires_at = $3 where id = $1", [
    placement.id,
    now,
    placement.leaseExpiresAt,
  ]);
}

function sessionOf(placement: Placement, attempt: Attempt): Session {
  return {
    orderId: attempt.id,
    placementId: placement.id,
    workloadId: placement.workloadId,
    tenantId: placement.tenantId,
    sessionHash: attempt.sessionHash ?? "",
  };
}

const NOT_THE_LATEST = refusal("fenced", "The session is not the order's latest one.");

function refusal(refused: SessionRefusal["refused"], message: string): SessionRefusal {
  return { refused, message };
}

function equal(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
