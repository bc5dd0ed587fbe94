import type { Database, Tx } from "../../../infra/db/database.ts";
import { isWaitForOthersOver } from "../../../infra/db/unavailable.ts";
import { compareText } from "../../../infra/kernel/compare-text.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { hold } from "../ledger/ledger.commands.ts";
import { microsFor } from "../ledger/price.ts";
import { type MatchContext, matchOffers } from "../offer/match-offers.ts";
import type { MarketView } from "../offer/offer-market.ts";
import type { StageSpec } from "../stage/stage.entity.ts";
import { endHopeless, type HopelessWait, hopelessOf } from "./end-hopeless.commands.ts";
import { type BatchRequest, type DueStage, putOff, takeFairBatch } from "./fair-batch.ts";
import { holdersOf, LockedRows } from "./locked-rows.ts";
import { needDefaults, type PlacementDeps } from "./placement-deps.ts";
import { giveBack, reserve } from "./reserve-capacity.ts";
import type { ClaimedOrder, Granted, StageSeeker } from "./seeker.ts";
import { waitingReasonOf } from "./waiting.ts";
import { WorkloadSteps } from "./workload-steps.ts";
import { writeGrants } from "./write-claims.ts";
import { writeWaiting } from "./write-waiting.ts";

export interface ClaimedBatch {
  orders: ClaimedOrder[];
  /** Stages that were looked at, placed or not. */
  looked: number;
  /** Tenant that the round ended with; empty when none waited. */
  lastTenant: string;
}

/**
 * Claims capacity and the first window's money for a fair batch of waiting stages, in one transaction: what is written
 * down here is launched afterwards, and launched again by the same order id should this process die. Stages that get
 * nothing say why and when they are looked at again; those that never will end their workloads, each in a command of its
 * own, since this one holds the accounts of many teams. When one of the rows that it needs is held by somebody else, it
 * begins again and passes over what is: one team's held account keeps no other team's stages waiting. Stages that only a
 * held row keeps waiting say nothing new, since nothing else is wrong, and come again soon. `locked` is the process's own.
 */
export async function claimBatch(
  deps: PlacementDeps,
  request: Omit<BatchRequest, "now">,
  locked = new LockedRows(),
): Promise<ClaimedBatch> {
  const now = deps.clock.now();
  const claiming = (passOver: boolean, lockWaitMs: number) =>
    deps.db.command((tx) => claim(tx, deps, { ...request, now }, { passOver, locked }), { lockWaitMs });
  const { ends, ...claimed } = await claiming(false, LIMITS.groupLockMs).catch((error: unknown) => {
    if (isWaitForOthersOver(error)) return claiming(true, LIMITS.lockWaitMs);
    throw error;
  });
  for (const end of ends) await endOrPutOff(deps.db, end, now);
  return claimed;
}

/** Ends a workload that waits for nothing, or leaves it for later while its team's account is held. */
async function endOrPutOff(db: Database, end: HopelessWait, now: Date): Promise<void> {
  const bounds = { teamId: end.tenantId, comesAgain: true, lockWaitMs: LIMITS.groupLockMs };
  try {
    await db.command((tx) => endHopeless(tx, end, now), bounds);
  } catch (error) {
    if (!isWaitForOthersOver(error)) throw error;
    await putOff(db, [end.stageRunId], LIMITS.heldStageMs, now);
  }
}

async function claim(
  tx: Tx,
  deps: PlacementDeps,
  request: BatchRequest,
  { passOver, locked }: { passOver: boolean; locked: LockedRows },
): Promise<ClaimedBatch & { ends: HopelessWait[] }> {
  const { now } = request;
  const [, batch, market] = await Promise.all([
    tx.sql(PLAN_ONCE),
    takeFairBatch(tx, request, { passOver }),
    deps.market.view(tx, now),
  ]);
  if (batch.length === 0) return { orders: [], looked: 0, lastTenant: "", ends: [] };
  const wanted = batch.filter((stage) => !stage.workload.cancelRequested);
  const found = seekersOf(deps, wanted, market, now);
  await reserve(tx, found, { passOver });
  if (passOver) await lockFreeAccounts(tx, found);
  const seekers = await withoutHeldUp(tx, found, locked, now);
  const steps = new WorkloadSteps(now);
  for (const seeker of seekers) steps.move(seeker.stage, "plan", considered(seeker));
  const granted = await fund(tx, deps, seekers, now);
  const waiting = seekers.filter((s) => s.waitsFor !== null);
  // Where nobody waits all of it leaves in one write.
  const [orders] = await Promise.all([
    writeGrants(tx, deps, granted, steps, now),
    writeWaiting(tx, deps, waiting, steps, now).then(() => steps.write(tx)),
  ]);
  return { orders, looked: batch.length, lastTenant: batch.at(-1)!.tenantId, ends: hopelessOf(batch, seekers) };
}

/**
 * For the claim's own transaction. All its statements go by an index whatever their values are, and the one that takes the
 * batch costs several times as much to plan as to run; left to choose, the server may plan it for each claim.
 */
const PLAN_ONCE = "set local plan_cache_mode = force_generic_plan";

/**
 * Takes the accounts of the teams that chose something, as `fund` is going to, except those that somebody holds: stages of
 * these are held up.
 */
async function lockFreeAccounts(tx: Tx, seekers: readonly StageSeeker[]): Promise<void> {
  const choosing = seekers.filter((s) => s.chosen !== null);
  const teams = [...new Set(choosing.map((s) => s.stage.tenantId))];
  const free = await tx.sql<{ id: string }>(
    "select id from compute.account where id = any($1) order by id for no key update skip locked",
    [teams],
  );
  const mayAsk = new Set(free.map(({ id }) => id));
  const holders = await holdersOf(
    tx,
    "compute.account",
    teams.filter((id) => !mayAsk.has(id)),
  );
  for (const seeker of choosing) seeker.heldUpBy = holders.get(seeker.stage.tenantId) ?? null;
}

/** Those that are held up give back what they chose, and are looked at again in a moment; the others are returned. */
async function withoutHeldUp(
  tx: Tx,
  seekers: readonly StageSeeker[],
  locked: LockedRows,
  now: Date,
): Promise<StageSeeker[]> {
  const heldUp = seekers.filter((s) => s.heldUpBy !== null);
  if (heldUp.length === 0) return [...seekers];
  for (const { chosen } of heldUp) if (chosen) await giveBack(tx, chosen.offer.capacityId, chosen.need);
  // Seekers share what holds them up, and are told the same of it.
  const rows = new Map(heldUp.map(({ heldUpBy }) => [heldUpBy!.id, heldUpBy!]));
  const forMs = new Map([...rows.values()].map((row) => [row.id, locked.leaveAloneMs(row, now)]));
  for (const [ms, some] of Map.groupBy(heldUp, (s) => forMs.get(s.heldUpBy!.id)!))
    await putOff(
      tx,
      some.map((s) => s.stage.stageRunId),
      ms,
      now,
    );
  return seekers.filter((s) => s.heldUpBy === null);
}

function seekersOf(deps: PlacementDeps, batch: DueStage[], market: MarketView, now: Date): StageSeeker[] {
  const { settings } = deps;
  const defaults = needDefaults(settings);
  const price = { windowMs: settings.firstWindowMs, feeBasisPoints: settings.feeBasisPoints };
  const dearest = market.offers.at(-1)?.rateMicrosPerHour ?? 0n;
  const dearestMicros = microsFor({ ...price, rateMicrosPerHour: dearest }, price.windowMs);
  return batch.map((stage) => {
    const { spec, tenantId, failedOfferIds } = stage;
    const left = stage.workload.budgetLeftMicros;
    // What pays for every offer refuses none.
    const budget = left === null || left >= dearestMicros ? null : { ...price, micros: left };
    const context = { cpuFallback: settings.cpuFallback, defaults, budget, failedOfferIds };
    const likeness = likenessOf(tenantId, spec, context);
    const match = market.matches.of(likeness, () =>
      matchOffers(spec, market.offers, { ...context, now, tenantId, silentSuppliers: market.silentSuppliers }),
    );
    const waitsFor = match.ranked.length > 0 ? null : waitingReasonOf(match.nearest);
    return { stage, match, ranked: match.ranked, likeness, chosen: null, heldUpBy: null, waitsFor };
  });
}

/** Equal for stages of which every offer of one view of the market says the same. */
function likenessOf(
  tenantId: string,
  spec: StageSpec,
  { cpuFallback, defaults, budget, failedOfferIds }: Omit<MatchContext, "now" | "tenantId">,
): string {
  const { computeClass, computeClassDefaulted, gpu, gpuCount, deviceMemoryGb, vcpus, diskGb } = spec;
  const demands = [computeClass, computeClassDefaulted, gpu, gpuCount, deviceMemoryGb, vcpus, diskGb];
  const wishes = [demands, spec.regions, spec.placement, spec.needsIsolation, failedOfferIds];
  const price = budget && [budget.micros.toString(), budget.windowMs, budget.feeBasisPoints];
  return JSON.stringify([tenantId, wishes, price, cpuFallback, defaults]);
}

function considered({ stage, match }: StageSeeker): Record<string, unknown> {
  return { stage_id: stage.stageId, candidates: match.ranked.length, rejected: match.rejected.counts };
}

/** Reserves the first window's money for those that have capacity; who gets none gives the capacity back. */
async function fund(tx: Tx, deps: PlacementDeps, seekers: StageSeeker[], now: Date): Promise<Granted[]> {
  const { feeBasisPoints, firstWindowMs } = deps.settings;
  const granted: Granted[] = [];
  const inOrder = seekers.toSorted((a, b) => compareText(a.stage.tenantId, b.stage.tenantId));
  // One order of tenants for everybody, and all in one write: the statements run one after another all the same.
  const answers = await Promise.all(
    inOrder.map(async ({ stage, chosen }) => {
      if (!chosen) return null;
      const price = { rateMicrosPerHour: chosen.offer.rateMicrosPerHour, feeBasisPoints };
      const heldMicros = microsFor(price, firstWindowMs);
      return { heldMicros, answer: await hold(tx, stage.tenantId, stage.workload.id, heldMicros, now) };
    }),
  );
  for (const [i, seeker] of inOrder.entries()) {
    const { stage, chosen, match } = seeker;
    const held = answers[i];
    if (!chosen || !held) seeker.waitsFor ??= "no_capacity";
    else if (held.answer === "held") granted.push({ stage, match, chosen, heldMicros: held.heldMicros });
    else {
      seeker.waitsFor = held.answer;
      await giveBack(tx, chosen.offer.capacityId, chosen.need);
    }
  }
  return granted;
}
