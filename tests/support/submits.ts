import { expect } from "vitest";
import type { Actor } from "../../infra/kernel/actor.ts";
import { MEMBER } from "./actors.ts";
import { insertAccount, TENANT } from "./compute-fixtures.ts";
import { type Answer, type ComputeGraph } from "./compute-graph.ts";

const CREATE = `mutation ($workload: WorkloadSpecInput!, $key: String!) {
  createWorkload(input: { workload: $workload, idempotencyKey: $key }) {
    workload { id status revision name ownerUserId payload maxCostUsd completeBy createdAt
      events { seq type payload } stages { stageId status position continuityMode generation } }
    replayed status revision
  }
}`;

/** The least that a workload has to say. */
export const workload = { source: { image: "busybox:1", command: ["echo", "hi"] } };

/** What a refused submit must leave behind. */
export const NOTHING = { workloads: 0, keys: 0, events: 0, jobs: 0, runs: 0 };

/** Submits over the graph, and what they leave in the tables. */
export class Submits {
  readonly #graph: ComputeGraph;

  constructor(graph: ComputeGraph) {
    this.#graph = graph;
  }

  /** Empties the tables, offers nothing, and gives the team its account. */
  async begin(): Promise<void> {
    const { db, clock } = this.#graph;
    await db.sql(
      `truncate compute.account, compute.workload, compute.stage, compute.workload_event, compute.ledger_entry,
         infra.outbox, infra.idempotency_key, data.secret, data.asset cascade`,
    );
    await this.#graph.offer();
    await insertAccount(db, clock.now());
  }

  readonly create = (given: object = {}, key = "key-1", actor: Actor | null = MEMBER): Promise<Answer> =>
    this.#graph.run(CREATE, { workload: { ...workload, ...given }, key }, actor);

  readonly counts = async (): Promise<typeof NOTHING> => {
    const [row] = await this.#graph.db.sql<Record<keyof typeof NOTHING, bigint | number>>(
      `select (select count(*) from compute.workload) as workloads, (select count(*) from infra.idempotency_key) as keys,
         (select count(*) from compute.workload_event) as events, (select count(*) from infra.outbox) as jobs,
         (select active_runs from compute.account where id = $1) as runs`,
      [TENANT],
    );
    const { workloads, keys, events, jobs, runs } = row!;
    return {
      workloads: Number(workloads),
      keys: Number(keys),
      events: Number(events),
      jobs: Number(jobs),
      runs: Number(runs),
    };
  };
}

/** Code, status, field and numbers of the only error. */
export function refusal(answer: Answer): Record<"code" | "status" | "field" | "detail", unknown> {
  expect(answer.errors).toHaveLength(1);
  const { code, status, field, detail } = answer.errors![0]!.extensions as Record<string, unknown>;
  return { code, status, field, detail };
}
