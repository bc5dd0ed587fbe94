import type { Queryer } from "../../../infra/db/database.ts";

/** What other tables know of a generation. */
export interface PlacementFigures {
  continuityMode: string;
  /** The capacity is the team's own. */
  inPool: boolean;
  diskGb: number;
  networkGbps: number | null;
  checkpoints: number;
  checkpointBytes: number;
  outputBytes: number;
}

interface Row {
  id: string;
  continuity_mode: string;
  pool_id: string | null;
  disk_gb: number | null;
  network_gbps: number | null;
  checkpoints: bigint;
  checkpoint_bytes: bigint | null;
  output_bytes: bigint | null;
}

/** The figures of each placement, in the order of `ids`; one statement for all. */
export async function placementFigures(
  q: Queryer,
  tenantId: string,
  ids: readonly string[],
): Promise<(PlacementFigures | Error)[]> {
  const rows = await q.sql<Row>(
    `select p.id, s.continuity_mode, o.pool_id, o.disk_gb, o.network_gbps, m.checkpoints, m.checkpoint_bytes, r.output_bytes
     from compute.placement p
     join compute.stage s on s.id = p.stage_run_id
     left join compute.offer o on o.id = p.offer_id
     cross join lateral (
       select count(*) as checkpoints, sum((select sum((f->>'bytes')::bigint) from jsonb_array_elements(t.manifest->'files') f))::bigint as checkpoint_bytes
       from compute.manifest t where t.workload_id = p.workload_id and t.stage_id = p.stage_id
         and t.generation = p.generation and t.manifest->'files' <> '[]'::jsonb) m
     cross join lateral (
       select sum(t.bytes)::bigint as output_bytes from compute.output t where t.workload_id = p.workload_id
         and t.stage_id = p.stage_id and t.generation = p.generation) r
     where p.tenant_id = $1 and p.id = any($2)`,
    [tenantId, ids],
  );
  const found = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => {
    const row = found.get(id);
    if (!row) return new Error(`the placement ${id} has no figures`);
    return {
      continuityMode: row.continuity_mode,
      inPool: row.pool_id !== null,
      diskGb: row.disk_gb ?? 0,
      networkGbps: row.network_gbps,
      checkpoints: Number(row.checkpoints),
      checkpointBytes: Number(row.checkpoint_bytes ?? 0n),
      outputBytes: Number(row.output_bytes ?? 0n),
    };
  });
}
