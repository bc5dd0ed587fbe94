import type { Tx } from "../../../infra/db/database.ts";
import { isWaitForOthersOver } from "../../../infra/db/unavailable.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { type Allowance, type OrderSpec, RUNNER_PROTOCOL } from "../../../infra/runner/protocol.ts";
import { hashToken } from "../placement/order-token.ts";
import { exchangeToken } from "./exchange-token.ts";
import { finishWorkload } from "./finish.commands.ts";
import { allowanceOf, extendFunding, warnOfBudget } from "./funding.commands.ts";
import type { LifecycleDeps } from "./lifecycle-deps.ts";
import { boundsOf, findOrder, lockSession } from "./locked-order.ts";
import { orderSpec } from "./order-spec.ts";
import { type LiveOrder, liveOrder, renewLease, renewLeaseAlone } from "./renew-lease.ts";
import { refusal, type Session, type SessionRefusal, UNKNOWN_ORDER } from "./session.ts";

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
  const token = Buffer.from(deps.random(32)).toString("base64url");
  const order = await findOrder(deps.db, open.orderId);
  if (!order) return UNKNOWN_ORDER;
  const session = { ...order, sessionHash: hashToken(token) };
  const found = await exchangeToken(deps, { session, tokenHash: hashToken(open.token) });
  if ("refused" in found) return found;
  const { workload, placement, attempt, stage } = found;
  try {
    return {
      ...{ session, token },
      spec: orderSpec(stage, placement, attempt, deps.settings),
      secrets: await secretValues(deps, session, stage.spec.secretEnv),
      allowance: allowanceOf(placement, workload, deps.settings, deps.clock.now()),
    };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return failForSecrets(deps, session, error);
  }
}

/** Secrets that can never be read again would keep the order waiting for ever: the workload fails and says why. */
async function failForSecrets(deps: LifecycleDeps, session: Session, refused: Refused): Promise<SessionRefusal> {
  const now = deps.clock.now();
  const { workloadId } = session;
  const end = { workloadId, event: "fail", reason: "input_unavailable", message: refused.message, now } as const;
  await deps.db.command((tx) => finishWorkload(tx, end), { ...boundsOf(session), comesAgain: true });
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
  const order = await findOrder(deps.db, resume.orderId);
  if (!order) return UNKNOWN_ORDER;
  const session = { ...order, sessionHash: hashToken(resume.session) };
  const live = await orHeardAlone(deps, session, (tx, now) => renewLocked(tx, session, deps.settings.leaseMs, now));
  if ("refused" in live) return live;
  const { workload, placement } = live;
  const allowance = allowanceOf(placement, workload, deps.settings, deps.clock.now());
  return { session, ackSeq: placement.appliedSeq, allowance };
}

/** A heartbeat: renews the lease, pays for the next window, and tells what is wanted. */
export async function beat(deps: LifecycleDeps, session: Session): Promise<Allowance | SessionRefusal> {
  const live = await orHeardAlone(deps, session, async (tx, now) => {
    const found = await renewLocked(tx, session, deps.settings.leaseMs, now);
    if ("refused" in found) return found;
    const { workload, placement } = found;
    await warnOfBudget(tx, workload, placement, now);
    if (placement.want === "run")
      placement.heldMicros = await extendFunding(tx, workload, placement, deps.settings, now);
    return found;
  });
  return "refused" in live ? live : allowanceOf(live.placement, live.workload, deps.settings, deps.clock.now());
}

async function renewLocked(tx: Tx, session: Session, leaseMs: number, now: Date): Promise<LiveOrder | SessionRefusal> {
  const found = await lockSession(tx, session);
  if (!("refused" in found)) await renewLease(tx, found.placement, leaseMs, now);
  return found;
}

/**
 * Does what a sign of life of a host is for, or, while somebody holds rows of its team, only what needs none of them: the
 * host is not lost, and the rest comes with its next beats.
 */
async function orHeardAlone(
  deps: LifecycleDeps,
  session: Session,
  work: (tx: Tx, now: Date) => Promise<LiveOrder | SessionRefusal>,
): Promise<LiveOrder | SessionRefusal> {
  const now = deps.clock.now();
  try {
    return await deps.db.command((tx) => work(tx, now), { ...boundsOf(session), comesAgain: true });
  } catch (error) {
    const alone = isWaitForOthersOver(error) ? await renewLeaseAlone(deps, session) : null;
    if (!alone) throw error;
    return alone;
  }
}

/** What is wanted of an order now, without renewing anything; for pushing a change to its host. */
export async function currentAllowance(deps: LifecycleDeps, session: Session): Promise<Allowance | SessionRefusal> {
  const live = await liveOrder(deps.db, session);
  return "refused" in live ? live : allowanceOf(live.placement, live.workload, deps.settings, deps.clock.now());
}
