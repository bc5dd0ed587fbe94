import type { Tx } from "../../../infra/db/database.ts";
import { enqueue } from "../../../infra/db/outbox.ts";
import { toUsd } from "../../../infra/kernel/micros.ts";
import { closeWorkload } from "../jobs.ts";
import { charge, post, release, type Side } from "../ledger/ledger.commands.ts";
import { type Charge, cappedCharge, chargeFor } from "../ledger/price.ts";
import { Placement } from "../placement/placement.entity.ts";
import { appendEvent } from "../workload/workload.transitions.ts";
import { priceOf } from "./funding.commands.ts";

/**
 * Posts what a placement cost and gives the rest of its hold back, once: the placement is closed in the same
 * transaction. Only placements whose resources are gone are settled, so nothing can cost more afterwards.
 */
export async function settle(tx: Tx, placementId: string, now: Date): Promise<"settled" | "not_due"> {
  const [ids] = await tx.sql<{ workload_id: string }>("select workload_id from compute.placement where id = $1", [
    placementId,
  ]);
  if (!ids) return "not_due";
  await tx.sql("select 1 from compute.workload where id = $1 for update", [ids.workload_id]);
  const placement = await tx.row(
    Placement,
    "where t.id = $1 and t.state = 'ended' and t.gone_at is not null for update",
    [placementId],
  );
  if (!placement) return "not_due";
  const due = chargeFor(priceOf(placement), placement.ranMs ?? 0);
  const charged = cappedCharge(due, placement.heldMicros);
  await tx.sql("update compute.placement set state = 'closed', charged_micros = $2 where id = $1", [
    placementId,
    charged.totalMicros,
  ]);
  await settleWorkload(tx, placement.workloadId, charged, now);
  const sides = [...customerSides(placement, charged), ...lossSides(placement, due.totalMicros - charged.totalMicros)];
  await post(tx, placement.tenantId, placement.workloadId, placement.id, sides, now);
  // The account's row is the team's hottest: last.
  if (charged.totalMicros > 0n) await charge(tx, placement.tenantId, placement.workloadId, charged.totalMicros, now);
  await release(tx, placement.tenantId, placement.workloadId, placement.heldMicros, now);
  return "settled";
}

/** The price as the customer reads it: the capacity and the platform's fee credited as charges, one debit that closes them. */
function customerSides(placement: Placement, { computeMicros, feeMicros, totalMicros }: Charge): Side[] {
  if (totalMicros === 0n) return [];
  const evidence = {
    stage_id: placement.stageId,
    generation: placement.generation,
    sku: placement.sku,
    price_usd_hour: toUsd(placement.rateMicrosPerHour),
    running_ms: placement.ranMs,
  };
  const sides: Side[] = [
    {
      account: "compute_revenue",
      entryType: "customer_charge",
      creditMicros: computeMicros,
      evidence: { kind: "compute", ...evidence },
    },
  ];
  if (feeMicros > 0n)
    sides.push({
      account: "platform_fee_revenue",
      entryType: "customer_charge",
      creditMicros: feeMicros,
      evidence: { kind: "platform_fee", ...evidence, fee_basis_points: placement.feeBasisPoints },
    });
  sides.push({
    account: "customer_credit",
    entryType: "settle_close",
    debitMicros: totalMicros,
    evidence: { kind: "settlement", ...evidence },
  });
  return sides;
}

/** Running time beyond what was authorised is the operator's loss, never the customer's. */
function lossSides(placement: Placement, lossMicros: bigint): Side[] {
  if (lossMicros <= 0n) return [];
  const evidence = { kind: "overrun", generation: placement.generation };
  return [
    { account: "operator_loss", entryType: "operator_loss", debitMicros: lossMicros, evidence },
    { account: "supplier_cost", entryType: "operator_loss", creditMicros: lossMicros, evidence },
  ];
}

/**
 * A finished workload of which every placement is closed owes nothing more: says so once, and sends for what is left to
 * let go of. `posting` is what this transaction is about to post beyond the rows.
 */
export async function settleWorkload(tx: Tx, workloadId: string, posting: Charge, now: Date): Promise<void> {
  const settled = await tx.sql<{ spend_micros: bigint; placed: boolean }>(
    `update compute.workload w set settled_at = $2, resources_released_at = coalesce(resources_released_at, $2)
     where w.id = $1 and w.terminal_at is not null and w.settled_at is null
       and not exists (select 1 from compute.placement p where p.workload_id = w.id and p.state <> 'closed')
     returning w.spend_micros, exists (select 1 from compute.placement p where p.workload_id = w.id) as placed`,
    [workloadId, now],
  );
  const [row] = settled;
  if (!row) return;
  const [fees] = await tx.sql<{ fees: bigint | null }>(
    "select sum(credit_micros)::bigint as fees from compute.ledger_entry where subject_id = $1 and account = 'platform_fee_revenue'",
    [workloadId],
  );
  const payload = {
    charged_usd: toUsd(row.spend_micros + posting.totalMicros),
    platform_fee_usd: toUsd((fees?.fees ?? 0n) + posting.feeMicros),
  };
  if (row.placed) await appendEvent(tx, workloadId, "workload.settled", payload, now);
  await enqueue(tx, closeWorkload, { workloadId }, now);
}

/** Nothing more is posted. */
export const NOTHING_POSTED: Charge = { computeMicros: 0n, feeMicros: 0n, totalMicros: 0n };
