import type { Database } from "../../infra/db/database.ts";
import { forJob } from "../../infra/db/job-bounds.ts";
import type { ObjectStore, StoredObject } from "../../infra/objects/object-store.ts";
import { DONE, implementJob, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { commitLog } from "../../subgraphs/compute/jobs.ts";
import { LogChunk } from "../../subgraphs/compute/log/log-chunk.entity.ts";
import { holdResult, ResultBeingRemoved, storeResult } from "../../subgraphs/compute/output/result-object.commands.ts";
import { Placement } from "../../subgraphs/compute/placement/placement.entity.ts";
import { topics } from "../../subgraphs/compute/topics.ts";

/** Chunks that one read takes; at 64 KiB each this bounds the memory of a commit. */
const CHUNKS_A_READ = 32;

/**
 * Puts a generation's complete log into the object store, so that the rows can be swept later. The object is named by its
 * hash: a second run stores the same bytes under the same name. What is committed is what we have, under a digest of
 * ours; where bytes are missing, the log ends before them and its end counts as lost.
 */
export function commitLogJob(logs: Pick<ObjectStore, "put">): JobImplementation<{ placementId: string }> {
  return implementJob(commitLog, async ({ placementId }, { db, clock, logger }) => {
    const placement = await db.row(
      Placement,
      "where t.id = $1 and t.log_complete and t.log_committed_at is null and t.log_removed_at is null",
      [placementId],
    );
    if (!placement || placement.logBytes === 0) return DONE;
    const deps = { db, objects: logs, clock };
    const stored = await storeResult(deps, chunksOf(db, placement), { maxBytes: placement.logBytes });
    const now = clock.now();
    const committed = await db.command(async (tx) => {
      if (!(await holdResult(tx, stored.sha256))) throw new ResultBeingRemoved(); // the next run stores them again
      const rows = await tx.sql(
        `update compute.placement set log_sha256 = $2, log_committed_at = $3, log_bytes = $4,
           log_tail_lost = log_tail_lost or log_bytes > $4 where id = $1 and log_committed_at is null returning id`,
        [placementId, stored.sha256, now, stored.bytes],
      );
      tx.wake(topics.log(placement.workloadId));
      return rows.length === 1;
    }, forJob(placement.tenantId));
    if (committed && !isTheHosts(placement, stored))
      logger.error(
        { placementId, stored, hostBytes: placement.logBytes, hostSha256: placement.logSha256 },
        "a log differs from what its host sent and is committed as it is",
      );
    return DONE;
  });
}

function isTheHosts({ logBytes, logSha256 }: Placement, stored: StoredObject): boolean {
  return stored.bytes === logBytes && (logSha256 === null || logSha256 === stored.sha256);
}

/** The log up to its end, or up to the first byte that is missing. */
async function* chunksOf(db: Database, placement: Placement): AsyncGenerator<Uint8Array> {
  let offset = 0;
  for (let after = 0; ; ) {
    const chunks = await db.rows(
      LogChunk,
      "where t.workload_id = $1 and t.placement_id = $2 and t.seq > $3 order by t.seq limit $4",
      [placement.workloadId, placement.id, after, CHUNKS_A_READ],
    );
    for (const chunk of chunks) {
      if (chunk.byteOffset !== offset) return;
      yield chunk.bytes;
      offset += chunk.bytes.length;
    }
    const last = chunks.at(-1);
    if (!last || chunks.length < CHUNKS_A_READ) return;
    after = last.seq;
  }
}
