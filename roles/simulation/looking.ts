import { DATA_ALWAYS, DUE_DELIVERIES } from "./data-invariants.ts";
import { ALWAYS, findings, NOT_OVERSOLD } from "./invariants.ts";
import { DUE_RESULTS, RESULTS_ALWAYS, STORED_NAMES } from "./result-invariants.ts";
import type { Written } from "./written.ts";

/** Rows of this name are no findings: the judge compares them. */
export const RESERVED = "reserved now";
export const OPEN_ORDERS = "orders that are not gone";
export const DUE = "what is due";
export const OUTBOX = "jobs in the outbox";
export const STORED = "objects that rows refer to";
export const OPEN_WORKLOADS = "workloads that are not settled";

/**
 * What the judge asks besides what always holds. `$2` is the latest time that anybody has read: a stage whose next try
 * lies beyond it was looked at, and then its workload says what it waits for; one that was due before the wall clock was
 * set back is only late.
 */
const ASKED: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(ALWAYS).filter(([sentence]) => sentence !== NOT_OVERSOLD)),
  ...RESULTS_ALWAYS,
  ...DATA_ALWAYS,
  "what waits for capacity says why and since when": `
    select w.id, w.status, s.next_try_at from compute.workload w join compute.stage s on s.workload_id = w.id
    where w.terminal_at is null and s.status = 'placing' and s.next_try_at > $2
      and (w.waiting_reason is null or w.waiting_since is null)`,
};

/** Answers with one row each, whatever they find. */
const COMPARED: Readonly<Record<string, string>> = {
  [RESERVED]: `select coalesce(jsonb_agg(jsonb_build_object('id', id, 'slots', slots, 'slots_used', slots_used,
      'cpu_millis', cpu_millis, 'cpu_millis_used', cpu_millis_used, 'memory_mb', memory_mb,
      'memory_mb_used', memory_mb_used, 'gpus', gpus, 'gpus_used', gpus_used) order by id), '[]') from compute.capacity`,
  [OPEN_ORDERS]: `
    select coalesce(jsonb_agg(jsonb_build_object('id', a.id, 'applied_seq', p.applied_seq,
      'wanted', coalesce(p.want = 'run' and p.state in ('provisioning', 'running'), false))), '[]')
    from compute.attempt a left join compute.placement p on p.order_id = a.id where a.state <> 'gone'`,
  // A stage that is tried gets another time; everything else is over once it is done.
  [DUE]: `
    select coalesce(jsonb_agg(what), '[]') from (
      select 'place ' || id || ' at ' || next_try_at from compute.stage where status = 'placing'
      union all select 'settle ' || id from compute.placement where state = 'ended' and gone_at is not null
      union all select 'commit the log of ' || id from compute.placement
        where state in ('ended', 'closed') and log_complete and log_bytes > 0
          and log_committed_at is null and log_removed_at is null
      union all select 'close ' || w.id from compute.workload w where w.terminal_at is not null and w.settled_at is null
        and not exists (select 1 from compute.placement p where p.workload_id = w.id and p.state <> 'closed')
      union all ${DUE_DELIVERIES}
      union all ${DUE_RESULTS}
    ) due(what)`,
  [OUTBOX]: "select coalesce(jsonb_agg(id), '[]') from infra.outbox",
  [STORED]: STORED_NAMES,
  [OPEN_WORKLOADS]: "select coalesce(jsonb_agg(id), '[]') from compute.workload where settled_at is null",
};

/** Tables whose rows belong to one workload. */
const OF_WORKLOADS = ["placement", "attempt", "stage", "workload_event", "log_chunk", "unit_observation"];

/** What a statement reads, from its text. */
export function readBy(text: string): { tables: ReadonlySet<string>; words: ReadonlySet<string> } {
  return {
    tables: new Set([...text.matchAll(/\b(?:from|join)\s+([a-z_]+\.[a-z_]+)/gi)].map((found) => found[1]!)),
    words: new Set(text.match(/\w+/g)),
  };
}

const SENTENCES = Object.entries({ ...ASKED, ...COMPARED }).map(([sentence, text]) => ({
  sentence,
  text,
  ...readBy(text),
}));
const statements = new Map<string, string>();

/** Names of the sentences that a change may have broken: they read a table and a column of it that were written. */
export function sentencesOver(written: Written): string[] {
  return SENTENCES.filter(({ tables, words }) =>
    [...written].some(
      ([table, columns]) =>
        tables.has(table) && (!(columns instanceof Set) || [...columns].some((column) => words.has(column))),
    ),
  ).map(({ sentence }) => sentence);
}

/** Every sentence's name. */
export const EVERY_SENTENCE: readonly string[] = SENTENCES.map(({ sentence }) => sentence);

/**
 * One statement for all these sentences. With `recent` they are asked of the workloads that are not settled and of those
 * with the ids `$1`; what is settled has no part in sums, and a sentence of its own says that it owes and has nothing.
 */
export function lookAt(sentences: readonly string[], of: "all" | "recent"): string {
  const key = `${of} ${sentences.join()}`;
  const before = statements.get(key);
  if (before) return before;
  const asked = SENTENCES.filter(({ sentence }) => sentences.includes(sentence));
  const parts = asked.map(({ sentence, text }) => {
    if (sentence in COMPARED) return `select '${sentence}' as sentence, (${text}) as row`;
    return findings([sentence, of === "recent" ? recent(text) : text]);
  });
  // All values are always there, so that every look is prepared alike.
  const ids = "given as (select $1::text[] as ids, $2::timestamptz as latest, $3::timestamptz as now)";
  const statement = `with ${[ids, ...recentTables(of === "recent" ? asked : [])].join(",\n")}\n${parts.join("\nunion all ")}`;
  statements.set(key, statement);
  return statement;
}

function recent(text: string): string {
  return text.replace(/\bcompute\.(\w+)/g, (full, table: string) =>
    table === "workload" || OF_WORKLOADS.includes(table) ? table : full,
  );
}

function recentTables(asked: readonly { tables: ReadonlySet<string> }[]): string[] {
  const read = OF_WORKLOADS.filter((table) => asked.some(({ tables }) => tables.has(`compute.${table}`)));
  if (read.length === 0 && !asked.some(({ tables }) => tables.has("compute.workload"))) return [];
  return [
    "workload as materialized (select * from compute.workload where settled_at is null or id = any($1))",
    ...read.map(
      (table) => `${table} as (select * from compute.${table} where workload_id in (select id from workload))`,
    ),
  ];
}
