import type { Actor } from "../../infra/kernel/actor.ts";
import { systemClock } from "../../infra/kernel/clock.ts";
import { createWorkload, type WorkloadDeps } from "../../subgraphs/compute/workload/create-workload.ts";
import { smallRequest } from "./bench-data.ts";

let keys = 0;

/** A key that was not used before. */
export function freshKey(): string {
  return `bench-${process.pid}-${keys++}`;
}

/** Submits workloads and gives one dollar of charges to each, so that reading one reads its fees too; their ids. */
export async function openWorkloads(deps: WorkloadDeps, actor: Actor, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const request = { ...smallRequest(), idempotencyKey: freshKey() };
    ids.push((await createWorkload(deps, actor, request, systemClock.now())).workload.id);
  }
  await deps.db.sql("update compute.workload set spend_micros = 1000000 where id = any($1)", [ids]);
  return ids;
}
