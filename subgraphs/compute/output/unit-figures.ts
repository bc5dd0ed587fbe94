import type { Queryer } from "../../../infra/db/database.ts";

/** Work units of a workload in figures. */
export interface UnitFigures {
  units: number;
  p50Ms: number | null;
  p95Ms: number | null;
  /** Reports that the runner had to drop. */
  dropped: number;
}

interface Row {
  workload_id: string;
  units: bigint;
  p50: number | null;
  p95: number | null;
  dropped: bigint;
}

/** The figures of each workload, in the order of `ids`. */
export async function unitFigures(q: Queryer, tenantId: string, ids: readonly string[]): Promise<UnitFigures[]> {
  const rows = await q.sql<Row>(
    `select u.workload_id, count(*) as units, percentile_cont(0.5) within group (order by u.ms) as p50,
       percentile_cont(0.95) within group (order by u.ms) as p95,
       (select coalesce(sum(p.dropped_units), 0) from compute.placement p where p.workload_id = u.workload_id) as dropped
     from compute.unit_observation u where u.workload_id in (select id from compute.workload where tenant_id = $2 and id = any($1)) group by u.workload_id`,
    [ids, tenantId],
  );
  const found = new Map(rows.map((row) => [row.workload_id, row]));
  return ids.map((id) => {
    const row = found.get(id);
    return row
      ? { units: Number(row.units), p50Ms: row.p50, p95Ms: row.p95, dropped: Number(row.dropped) }
      : { units: 0, p50Ms: null, p95Ms: null, dropped: 0 };
  });
}
