import type { Database } from "../../infra/db/database.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import { DONE, implementJob, type JobImplementation } from "../../infra/queue/implement-job.ts";
import { commitLog } from "../../subgraphs/compute/jobs.ts";
import { LogChunk } from "../../subgraphs/compute/log/log-chunk.entity.ts";
import { Placement } from "../../subgraphs/compute/placement/placement.entity.ts";
import { topics } from "../../subgraphs/compute/topics.ts";

/** Chunks that one read takes; at 64 KiB each this bounds the memory of a commit. */
const CHUNKS_A_READ = 32;

/**
 * Puts a generation's complete log into the object store, so that the rows can be swept later. The object is named by its
 * hash: a second run stores the same bytes under the same name.
 */
export function commitLogJob(logs: ObjectStore): JobImplementation<{ placementId: string }> {
  return implementJob(commitLog, async ({ placementId }, { db, clock }) => {
    const placement = await db.row(Placement, "where t.id = $1 and t.log_complete and t.log_committed_at is null", [
      placementId,
    ]);
    if (!placement || placement.logBytes === 0) return DONE;
    const stored = await logs.put(chunksOf(db, placement), { maxBytes: placement.logBytes });
    if (stored.bytes !== placement.logBytes)
      throw new Error(`the log of ${placementId} has ${stored.bytes} bytes of ${placement.logBytes}`);
    if (placement.logSha256 !== null && placement.logSha256 !== stored.sha256)
      throw new Error(`the log of ${placementId} differs from what its host hashed`);
    const now = clock.now();
    await db.command(async (tx) => {
      await tx.sql(
        "update compute.placement set log_sha256 = $2, log_committed_at = $3 where id = $1 and log_committed_at is null",
        [placementId, stored.sha256, now],
      );
      tx.wake(topics.log(placement.workloadId));
    });
    return DONE;
  });
}

async function* chunksOf(db: Database, placement: Placement): AsyncGenerator<Uint8Array> {
  for (let after = 0; ; ) {
    const chunks = await db.rows(
      LogChunk,
      "where t.workload_id = $1 and t.placement_id = $2 and t.seq > $3 order by t.seq limit $4",
      [placement.workloadId, placement.id, after, CHUNKS_A_READ],
    );
    for (const chunk of chunks) yield chunk.bytes;
    const last = chunks.at(-1);
    if (!last || chunks.length < CHUNKS_A_READ) return;
    after = last.seq;
  }
}
