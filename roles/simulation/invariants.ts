import type { Queryer } from "../../infra/db/database.ts";

/**
 * What is true of the tables after every commit, whatever happened: each statement returns the rows that break its
 * sentence. Tables stand with their schema, columns by name, for that tells when a sentence has to be looked at again.
 */
export const ALWAYS: Readonly<Record<string, string>> = {
  "an account holds what its workloads hold": `
    select a.id, a.held_micros, sum(w.held_micros) from compute.account a left join compute.workload w on w.tenant_id = a.id
    group by a.id having a.held_micros <> coalesce(sum(w.held_micros), 0)`,
  "a workload holds what its unsettled placements hold": `
    select w.id, w.status, w.held_micros, sum(p.held_micros)
    from compute.workload w left join compute.placement p on p.workload_id = w.id and p.state <> 'closed'
    group by w.id, w.status, w.held_micros having w.held_micros <> coalesce(sum(p.held_micros), 0)`,
  "an account never holds more than its credits": `
    select id, balance_micros, held_micros from compute.account where held_micros < 0 or held_micros > balance_micros`,
  "a workload never costs more than its limit": `
    select id, spend_micros, held_micros, max_cost_micros from compute.workload
    where spend_micros + held_micros > max_cost_micros`,
  "reserved capacity is that of the orders that are not gone": `
    select c.id, c.slots_used, count(a.id), c.cpu_millis_used, sum(a.cpu_millis)
    from compute.capacity c left join compute.attempt a on a.capacity_id = c.id and a.released_at is null
    group by c.id having c.slots_used <> count(a.id) or c.cpu_millis_used <> coalesce(sum(a.cpu_millis), 0)
      or c.memory_mb_used <> coalesce(sum(a.memory_mb), 0) or c.gpus_used <> coalesce(sum(a.gpus), 0)`,
  "no capacity is given out twice": `
    select id from compute.capacity where slots_used > slots or cpu_millis_used > cpu_millis
      or memory_mb_used > memory_mb or gpus_used > gpus`,
  "an order is released exactly when it is gone": `
    select id, state from compute.attempt where (state = 'gone') <> (released_at is not null)`,
  "a stage has one live placement at most": `
    select stage_run_id, count(*) from compute.placement where state in ('provisioning', 'running')
    group by stage_run_id having count(*) > 1`,
  "a stage that was ordered has its placement, and one that was not has nothing running": `
    select s.id, s.status, s.generation, p.state from compute.stage s
      left join compute.placement p on p.stage_run_id = s.id and p.generation = s.generation
    where case s.status when 'starting' then p.state is distinct from 'provisioning'
      when 'running' then p.state is distinct from 'running' else p.state = 'running' end`,
  "a live placement's order is the only one of it that may act": `
    select p.id, a.id, a.state from compute.attempt a join compute.placement p on p.id = a.placement_id
    where a.state in ('launching', 'booting', 'running')
      and (p.order_id <> a.id or p.state not in ('provisioning', 'running'))`,
  "an order runs exactly when its generation does": `
    select p.id, p.state, a.id as order_id, a.state as order_state
    from compute.placement p join compute.attempt a on a.id = p.order_id where (p.state = 'running') <> (a.state = 'running')`,
  "an order that nobody has heard yet has left nothing": `
    select p.id, p.log_bytes, p.ran_ms, p.exit_code from compute.placement p join compute.attempt a on a.id = p.order_id
    where a.state in ('launching', 'booting') and a.session_hash is null
      and (p.log_bytes > 0 or p.ran_ms is not null or p.running_at is not null or p.applied_seq > 0)`,
  "nothing of a workload that is over is alive": `
    select w.id, w.status, s.status, p.state from compute.workload w join compute.stage s on s.workload_id = w.id
      left join compute.placement p on p.workload_id = w.id and p.state in ('provisioning', 'running')
    where w.terminal_at is not null and (s.ended_at is null or p.id is not null or w.waiting_reason is not null)`,
  "a workload is over exactly when its status says so": `
    select id, status from compute.workload
    where (terminal_at is not null) <> (status in ('completed', 'failed', 'cancelled'))`,
  "unfinished workloads are counted": `
    select a.id, a.active_runs, count(w.id) from compute.account a
      left join compute.workload w on w.tenant_id = a.id and w.terminal_at is null
    group by a.id having a.active_runs <> count(w.id)`,
  "the books balance, posting by posting": `
    select correlation_id from compute.ledger_entry group by correlation_id having sum(credit_micros) <> sum(debit_micros)`,
  "credits are what the books say": `
    select a.id, a.balance_micros, sum(l.credit_micros - l.debit_micros) from compute.account a
      left join compute.ledger_entry l on l.tenant_id = a.id and l.account = 'customer_credit'
    group by a.id having a.balance_micros <> coalesce(sum(l.credit_micros - l.debit_micros), 0)`,
  "what a workload has cost is what was posted for it": `
    select w.id, w.spend_micros from compute.workload w
    where w.spend_micros <> (select coalesce(sum(l.credit_micros), 0) from compute.ledger_entry l
                             where l.subject_id = w.id and l.entry_type = 'customer_charge')
      or w.spend_micros <> (select coalesce(sum(p.charged_micros), 0) from compute.placement p where p.workload_id = w.id)`,
  "a placement is charged once it is closed, never above what it held, and nothing when it never ran": `
    select id, state, charged_micros, held_micros, running_at from compute.placement
    where (state = 'closed') <> (charged_micros is not null) or charged_micros > held_micros
      or (running_at is null and charged_micros > 0)`,
  "a settled workload owes nothing and has nothing": `
    select w.id from compute.workload w where w.settled_at is not null and (w.terminal_at is null or w.held_micros <> 0
      or w.resources_released_at is null
      or exists (select 1 from compute.placement p where p.workload_id = w.id and p.state <> 'closed')
      or exists (select 1 from compute.attempt a where a.workload_id = w.id and a.state <> 'gone'))`,
  "events are numbered without a gap": `
    select w.id, w.event_seq from compute.workload w left join compute.workload_event e on e.workload_id = w.id
    group by w.id, w.event_seq having count(e.id) <> w.event_seq or coalesce(max(e.seq), 0) <> w.event_seq`,
  "revision never goes back from event to event": `
    select * from (select e.workload_id, e.seq, e.type, (e.payload->>'revision')::int as revision,
        lag((e.payload->>'revision')::int) over w as revision_before
      from compute.workload_event e window w as (partition by e.workload_id order by e.seq)) steps
    where revision < revision_before`,
  "time never goes back from event to event": `
    select * from (select e.workload_id, e.seq, e.type, e.created_at, lag(e.created_at) over w as before
      from compute.workload_event e window w as (partition by e.workload_id order by e.seq)) steps
    where created_at < before`,
  "a workload ends in one event": `
    select w.id, w.status, count(e.id) from compute.workload w left join compute.workload_event e on e.workload_id = w.id
      and e.type in ('workload.completed', 'workload.failed', 'workload.cancelled')
    group by w.id, w.status, w.terminal_at having count(e.id) <> case when w.terminal_at is null then 0 else 1 end
      or max(e.type) <> 'workload.' || w.status`,
  "a workload that was asked to cancel is over or being stopped": `
    select w.id, w.status from compute.workload w where w.cancel_requested_at is not null and w.terminal_at is null
      and not exists (select 1 from compute.placement p
                      where p.workload_id = w.id and p.state = 'running' and p.want <> 'run')`,
  "a log is its chunks": `
    select p.id, p.log_bytes from compute.placement p left join compute.log_chunk c on c.placement_id = p.id
    where p.log_removed_at is null group by p.id, p.log_bytes having p.log_bytes <> coalesce(sum(octet_length(c.bytes)), 0)
      or p.log_bytes <> coalesce(max(c.byte_offset + octet_length(c.bytes)), 0)`,
  "log chunks are numbered without a gap": `
    select w.id, w.log_seq from compute.workload w left join compute.log_chunk c on c.workload_id = w.id
    where w.results_removed_at is null group by w.id, w.log_seq having count(c.seq) <> w.log_seq or coalesce(max(c.seq), 0) <> w.log_seq`,
  "work units are counted once": `
    select s.id, s.completed_units from compute.stage s where s.completed_units <>
      (select count(*) from compute.unit_observation u where u.workload_id = s.workload_id and u.stage_id = s.stage_id)`,
};

/** A supplier that takes machines back leaves more reserved than there is; the judge compares with the look before. */
export const NOT_OVERSOLD = "no capacity is given out twice";

/** Sentences that are not true at this moment, with some of the rows that break them. `without`: not asked. */
export async function brokenInvariants(q: Queryer, without: readonly string[] = []): Promise<string[]> {
  const asked = Object.entries(ALWAYS).filter(([sentence]) => !without.includes(sentence));
  const broken = await q.sql<Finding>(asked.map(findings).join(" union all "));
  return broken.map(notTrue);
}

/** A row that breaks a sentence. */
export interface Finding {
  sentence: string;
  row: unknown;
}

/** A sentence's statement, for a union with others: its rows are `Finding`s, few of them. */
export function findings([sentence, text]: readonly [sentence: string, text: string]): string {
  return `(select '${sentence.replaceAll("'", "''")}' as sentence, to_jsonb(t) as row from (${text}) t limit 3)`;
}

export function notTrue({ sentence, row }: Finding): string {
  return `not true: ${sentence}: ${JSON.stringify(row)}`;
}
