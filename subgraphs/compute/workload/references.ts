import type { Queryer, Tx } from "../../../infra/db/database.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { PinnedAsset } from "../../data/published.ts";
import type { ComputeServices } from "../compute-context.ts";
import type { StageSpec } from "../stage/stage.entity.ts";
import type { StageDraft, ValidWorkload } from "./validate/validate.ts";
import { WORKLOAD } from "./workload.refusals.ts";

type Ports = Pick<ComputeServices, "assets" | "secrets" | "pools" | "market">;

export interface ReferenceCheck {
  tenantId: string;
  workload: ValidWorkload;
  now: Date;
}

/** Refuses a workload whose assets, secrets, pool or isolation are not there; takes nothing. */
export async function checkReferences(q: Queryer, ports: Ports, check: ReferenceCheck): Promise<void> {
  const { tenantId, workload } = check;
  const wanted = assetsOf(workload);
  if (wanted.length > 0)
    await ports.assets.check(q, {
      tenantId,
      assetIds: wanted.map((w) => w.assetId),
      field: (index) => wanted[index]!.field,
    });
  if (workload.secretNames.length > 0)
    await ports.secrets.check(q, { tenantId, names: workload.secretNames, field: "/policy/secret_refs" });
  await checkCapacity(q, ports, check);
}

/** Pools and isolation: what no waiting would bring by itself. */
export async function checkCapacity(q: Queryer, ports: Ports, { tenantId, workload, now }: ReferenceCheck) {
  const placement = workload.stages[0]!.spec.placement;
  if (placement.kind !== "pool" && !workload.needsIsolation) return;
  const { offers } = await ports.market.view(q, now);
  const reachable = offers.filter((o) => !o.withdrawnAt && (o.tenantId === null || o.tenantId === tenantId));
  if (placement.kind === "pool") {
    const { poolId } = placement;
    if (!(await ports.pools.exists(q, tenantId, poolId)))
      throw new Refused(WORKLOAD.pool_not_found, { field: "/placement/pool" });
    if (!reachable.some((o) => o.poolId === poolId))
      throw new Refused(WORKLOAD.pool_unavailable, { field: "/placement/pool" });
  }
  if (workload.needsIsolation && !reachable.some((o) => o.isolated))
    throw new Refused(WORKLOAD.isolated_execution_unavailable, {
      field: workload.secretNames.length > 0 ? "/policy/secret_refs" : "/policy/egress_allow",
    });
}

/** Keeps what the workload refers to as it is now, for its whole life, and completes its stages with it. */
export async function pinReferences(
  tx: Tx,
  ports: Ports,
  { tenantId, workload, holderId, now }: ReferenceCheck & { holderId: string },
): Promise<{ draft: StageDraft; spec: StageSpec }[]> {
  const wanted = assetsOf(workload);
  const pinned = new Map<string, PinnedAsset>();
  if (wanted.length > 0) {
    const assets = await ports.assets.pin(tx, {
      tenantId,
      assetIds: wanted.map((w) => w.assetId),
      holderId,
      now,
      field: (index) => wanted[index]!.field,
    });
    for (const asset of assets) pinned.set(asset.id, asset);
  }
  if (workload.secretNames.length > 0)
    await ports.secrets.pin(tx, { tenantId, names: workload.secretNames, holderId, now, field: "/policy/secret_refs" });
  const assetSpec = (assetId: string) => {
    const { id, ...asset } = pinned.get(assetId)!;
    return { assetId: id, ...asset };
  };
  return workload.stages.map((draft) => ({
    draft,
    spec: {
      ...draft.spec,
      sourceAsset: draft.sourceAsset && assetSpec(draft.sourceAsset.assetId),
      inputs: workload.inputs.map(({ name, assetId }) => ({ name, asset: assetSpec(assetId) })),
    },
  }));
}

/** Every asset once, with the place that names it first. */
function assetsOf({ stages, inputs }: ValidWorkload): { assetId: string; field: string }[] {
  const named = [...stages.flatMap((s) => s.sourceAsset ?? []), ...inputs];
  return named.filter((a, i) => named.findIndex((b) => b.assetId === a.assetId) === i);
}
