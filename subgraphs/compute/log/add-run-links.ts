import { LIMITS } from "../../../infra/kernel/limits.ts";
import type { RecordContext } from "../lifecycle/record-handlers.ts";
import type { WorkloadLink } from "../workload/workload.entity.ts";
import { appendEvent } from "../workload/workload.transitions.ts";
import { RUN_PAGE_BYTES, runPages } from "./run-pages.ts";

/** Chunks that are looked at for the beginning of an address that goes on in new bytes. */
const CHUNKS_BACK = 16;

/**
 * Links a workload that logs to wandb to the runs whose pages its output names, in the entity and project that it was
 * admitted with; once each. Called before `bytes`, the next of the generation's log, are written.
 */
export async function addRunLinks(context: RecordContext, bytes: Buffer): Promise<void> {
  const { tx, workload, stage, now } = context;
  const { WANDB_ENTITY: entity, WANDB_PROJECT: project } = stage.spec.env ?? {};
  const room = LIMITS.workloadLinks - workload.links.length;
  if (!entity || !project || room <= 0) return;
  const text = Buffer.concat([await bytesBefore(context), bytes]).toString("latin1");
  const known = new Set(workload.links.map(({ url }) => url));
  const urls = runPages(text, entity, project).filter((url) => !known.has(url));
  const links = urls.slice(0, room).map((url): WorkloadLink => ({ kind: "wandb", url }));
  if (links.length === 0) return;
  workload.links = [...workload.links, ...links];
  await tx.sql("update compute.workload set links = links || $2::jsonb where id = $1", [
    workload.id,
    JSON.stringify(links),
  ]);
  for (const link of links) await appendEvent(tx, workload.id, "workload.link_added", { ...link }, now);
}

/** The last bytes of the generation's log so far. */
async function bytesBefore({ tx, workload, placement }: RecordContext): Promise<Buffer> {
  const chunks = await tx.sql<{ bytes: Buffer }>(
    `select bytes from compute.log_chunk where workload_id = $1 and placement_id = $2 and seq > $3 order by seq`,
    [workload.id, placement.id, workload.logSeq - CHUNKS_BACK],
  );
  return Buffer.concat(chunks.map(({ bytes }) => bytes)).subarray(-RUN_PAGE_BYTES);
}
