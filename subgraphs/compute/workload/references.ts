import type { Queryer, Tx } from "../../../infra/db/database.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { AdmittedConnection, ConnectionReference, PinnedAsset, PinnedSecret } from "../../data/published.ts";
import type { ComputeServices } from "../compute-context.ts";
import type { SinkSpec } from "../stage/stage.entity.ts";
import type { AcceptedStage } from "./accepted-rows.ts";
import { runEnvironment } from "./run-environment.ts";
import { requireDistinctTargets } from "./validate/outputs.ts";
import { at } from "./validate/refuse.ts";
import type { ValidWorkload } from "./validate/validate.ts";
import { WORKLOAD } from "./workload.refusals.ts";

type Ports = Pick<ComputeServices, "assets" | "secrets" | "connections" | "pools" | "market">;

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
      regions: regionsOf(workload),
    });
  if (workload.secretRefs.length > 0)
    await ports.secrets.check(q, { tenantId, names: workload.secretRefs, field: "/policy/secret_refs" });
  const references = connectionsOf(workload);
  if (references.length > 0) sinksOf(workload, await ports.connections.check(q, { tenantId, references }));
  await checkCapacity(q, ports, check);
}

/** Pools and isolation: what no waiting would bring by itself. */
export async function checkCapacity(q: Queryer, ports: Ports, { tenantId, workload, now }: ReferenceCheck) {
  const placement = workload.stages[0]!.spec.placement;
  if (placement.kind === "pool" && workload.liveConnection !== null)
    throw new Refused(WORKLOAD.isolated_execution_unavailable, {
      field: "/placement/pool",
      message: "A pool's machines are not given the credential of a connection.",
      fix: "Leave placement out, or leave connections out.",
    });
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
      field: isolatedFor(workload),
    });
}

/** The member that needs isolation, the most telling one first. */
function isolatedFor({ secretRefs, liveConnection }: ValidWorkload): string {
  if (secretRefs.length > 0) return "/policy/secret_refs";
  return liveConnection === null ? "/policy/egress_allow" : "/connections/0";
}

/** Keeps what the workload refers to as it is now, for its whole life, and completes its stages with it. */
export async function pinReferences(
  tx: Tx,
  ports: Ports,
  { tenantId, workload, holderId, now }: ReferenceCheck & { holderId: string },
): Promise<AcceptedStage[]> {
  const wanted = assetsOf(workload);
  const pinned = new Map<string, PinnedAsset>();
  if (wanted.length > 0) {
    const assets = await ports.assets.pin(tx, {
      tenantId,
      assetIds: wanted.map((w) => w.assetId),
      holderId,
      now,
      field: (index) => wanted[index]!.field,
      regions: regionsOf(workload),
    });
    for (const asset of assets) pinned.set(asset.id, asset);
  }
  const field = "/policy/secret_refs";
  const secrets =
    workload.secretRefs.length > 0
      ? await ports.secrets.pin(tx, { tenantId, names: workload.secretRefs, holderId, now, field })
      : [];
  const references = connectionsOf(workload);
  const connections =
    references.length > 0 ? await ports.connections.pin(tx, { tenantId, references, holderId, now }) : [];
  return completeStages(workload, holderId, { pinned, secrets, connections });
}

/** Whether the workload refers to nothing that has to be pinned, and to no capacity that may be missing for good. */
export function refersToNothing(workload: ValidWorkload): boolean {
  return (
    assetsOf(workload).length === 0 &&
    workload.secretRefs.length === 0 &&
    connectionsOf(workload).length === 0 &&
    !workload.needsIsolation &&
    workload.stages[0]!.spec.placement.kind !== "pool"
  );
}

interface Pinned {
  pinned: ReadonlyMap<string, PinnedAsset>;
  secrets: readonly PinnedSecret[];
  connections: readonly AdmittedConnection[];
}

export const NOTHING_PINNED: Pinned = { pinned: new Map(), secrets: [], connections: [] };

/** A workload's stages with what was pinned for them. */
export function completeStages(workload: ValidWorkload, holderId: string, found: Pinned): AcceptedStage[] {
  const { pinned, secrets, connections } = found;
  const sinks = sinksOf(workload, connections);
  const live = workload.liveConnection === null ? null : connections[0]!;
  const assetSpec = (assetId: string) => {
    const { id, ...asset } = pinned.get(assetId)!;
    return { assetId: id, ...asset };
  };
  return workload.stages.map((draft, index) => {
    const run = { workloadId: holderId, stageId: draft.stageId, sweepId: workload.payload.sweep_id };
    return {
      draft,
      spec: {
        ...draft.spec,
        ...runEnvironment(draft.spec.network, secrets, live, run),
        sourceAsset: draft.sourceAsset && assetSpec(draft.sourceAsset.assetId),
        inputs: workload.inputs.map(({ name, assetId }) => ({ name, asset: assetSpec(assetId) })),
        ...(draft.sinks.length > 0 ? { sinks: sinks[index]! } : {}),
      },
    };
  });
}

/** Every reference to a connection: the live one first, then the sinks in the order of their stages. */
function connectionsOf({ liveConnection, stages }: ValidWorkload): ConnectionReference[] {
  const sinks = stages.flatMap(({ sinks }) => sinks);
  return [
    ...(liveConnection === null
      ? []
      : [{ nameOrId: liveConnection, purpose: "live" as const, field: "/connections/0" }]),
    ...sinks.map(({ connection, field }) => ({
      ...{ nameOrId: connection, purpose: "sink" as const, field: at(field, "connection") },
    })),
  ];
}

/**
 * Each stage's sinks by output, from what `connectionsOf` was answered. Refuses two into one table: a name and an id may
 * mean one connection.
 */
function sinksOf(workload: ValidWorkload, found: readonly AdmittedConnection[]): Record<string, SinkSpec>[] {
  const connections = found.slice(workload.liveConnection === null ? 0 : 1).values();
  return workload.stages.map(({ sinks }) => {
    const resolved = sinks.map((sink) => ({ sink, connection: connections.next().value! }));
    requireDistinctTargets(
      resolved.map(({ sink, connection }) => ({ target: [connection.connectionId, sink.table], field: sink.field })),
    );
    return Object.fromEntries(
      resolved.map(({ sink, connection: { connectionId, secretId, secretVersion } }) => [
        sink.output,
        { connectionId, table: sink.table, secretId, secretVersion },
      ]),
    );
  });
}

/** Where the workload's data may be; anywhere when it names none. */
function regionsOf({ payload }: ValidWorkload): readonly string[] {
  return payload.policy.data_regions ?? [];
}

/** Every asset once, with the place that names it first. */
function assetsOf({ stages, inputs }: ValidWorkload): { assetId: string; field: string }[] {
  const named = [...stages.flatMap((s) => s.sourceAsset ?? []), ...inputs];
  return named.filter((a, i) => named.findIndex((b) => b.assetId === a.assetId) === i);
}
