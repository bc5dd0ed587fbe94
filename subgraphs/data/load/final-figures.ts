import type { Database } from "../../../infra/db/database.ts";
import { forJob } from "../../../infra/db/job-bounds.ts";
import type { RunFacts } from "../../compute/published.ts";
import { releaseConnections } from "../connection/connection-uses.ts";
import type { LoadDeps } from "./load.commands.ts";
import { SinkLoad } from "./load.entity.ts";

/** Loaded rows whose run has figures that are not beside them yet; null when there is nothing to write. */
export async function finalFigures(
  { db, results }: LoadDeps,
  loadId: string,
): Promise<{ load: SinkLoad; facts: RunFacts } | null> {
  const load = await db.row(SinkLoad, "where t.id = $1 and t.state = 'loaded' and t.run_state = 'due'", [loadId]);
  const facts = load && (await results.facts(db, load));
  return load && facts ? { load, facts } : null;
}

/** Says that the figures were written, and lets the credential go. A load that was asked for again keeps it. */
export function settleFigures(db: Database, { tenantId, id, fence }: SinkLoad): Promise<void> {
  return db.command(async (tx) => {
    const settled = await tx.sql(
      `update data.sink_load set run_state = 'final' where tenant_id = $1 and id = $2 and fence = $3
          and state = 'loaded' and run_state = 'due' returning 1`,
      [tenantId, id, fence],
    );
    if (settled.length > 0) await releaseConnections(tx, id);
  }, forJob(tenantId));
}
