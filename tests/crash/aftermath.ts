import { expect } from "vitest";
import { brokenInvariants } from "../../roles/simulation/invariants.ts";
import type { WorkloadState } from "../support/workloads.ts";
import type { Target } from "./target.ts";

/** Rows that wait and do not say why, or that nobody will ever look at again. */
const UNEXPLAINED: Record<string, string> = {
  "work that looks for capacity says why it has none": `
    select w.id, w.status, w.waiting_reason from compute.workload w join compute.stage s on s.workload_id = w.id
    where s.status = 'placing' and w.status in ('accepted', 'planning') and w.waiting_reason is null
      and coalesce(s.last_tried_at, s.created_at) < now() - interval '15 seconds'`,
  "waiting work is tried again": `
    select id, status, next_try_at from compute.stage where status = 'placing' and next_try_at < now() - interval '60 seconds'`,
  "a host that is not heard loses its lease": `
    select id, state, lease_expires_at from compute.placement where state = 'running' and lease_expires_at < now() - interval '60 seconds'`,
  "what is sent off is taken up": `
    select id, job, due_at from infra.outbox where due_at < now() - interval '60 seconds'`,
  "a placement is charged for the time that it ran": `
    select id, ran_ms, rate_micros_per_hour, held_micros, charged_micros from compute.placement
    where state = 'closed' and charged_micros > rate_micros_per_hour * coalesce(ran_ms, 0) / 3600000 * 11 / 10 + 2`,
  "nobody is charged for more time than passed": `
    select id, ran_ms, provisioned_at, ended_at from compute.placement
    where ran_ms > extract(epoch from (coalesce(ended_at, now()) - provisioned_at)) * 1000 + 2000`,
};

const TEXT = Object.entries(UNEXPLAINED)
  .map(([sentence, text]) => `(select '${sentence}' as sentence, to_jsonb(t) as row from (${text}) t limit 3)`)
  .join(" union all ");

/** What must be true at any time, whatever was killed: money, capacity, generations, and a reason for whoever waits. */
export async function expectSound(target: Target, when: string): Promise<void> {
  const sql = <T>(text: string, values?: readonly unknown[]) => target.sql<T>(text, values as unknown[]);
  const broken = await brokenInvariants({ sql } as Parameters<typeof brokenInvariants>[0]);
  const unexplained = await sql<{ sentence: string; row: unknown }>(TEXT);
  const told = unexplained.map(({ sentence, row }) => `not true: ${sentence}: ${JSON.stringify(row)}`);
  expect([...broken, ...told].join("\n"), when).toBe(""); // a text, so that the message tells it
}

/** What must be true when all work is over: nothing reserved, held, out, undone or unbalanced. */
export async function expectNothingLeft(target: Target, when: string): Promise<void> {
  const [left] = await target.sql(`select
    (select coalesce(sum(slots_used), 0)::int from compute.capacity) as slots,
    (select count(*)::int from compute.attempt where state <> 'gone') as orders,
    (select count(*)::int from compute.placement where state <> 'closed') as placements,
    (select count(*)::int from compute.placement where log_bytes > 0 and log_committed_at is null) as logs,
    (select count(*)::int from compute.workload where settled_at is null) as workloads`);
  expect(left, when).toEqual({ slots: 0, orders: 0, placements: 0, logs: 0, workloads: 0 });
  const { account } = await target.admin.query("{ account { activeRuns heldUsd trialBalanceUsd } }");
  expect(account, when).toEqual({ activeRuns: 0, heldUsd: 0, trialBalanceUsd: 0 });
}

/** Generations are numbered without a gap, all but the last were lost, and the last one ended as the workload did. */
export function expectOneTruth(end: WorkloadState, when: string): void {
  const generations = end.placements.map((placement: { generation: number }) => placement.generation);
  expect(generations, when).toEqual(generations.map((_: number, n: number) => n + 1));
  for (const placement of end.placements.slice(0, -1)) expect(placement.outcome, when).toBe("lost");
}
