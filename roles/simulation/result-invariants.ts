import { UNUSED_RESULT } from "../../subgraphs/compute/output/collect-result-bytes.ts";
import { SIMULATED_KEPT } from "./settings.ts";

/** A log that is stored and whose time is not over. */
const STORED_LOG = "p.log_committed_at is not null and p.log_removed_at is null and p.log_bytes > 0";

/** What is true of stored results after every commit, as `ALWAYS` says of the rest of compute's tables. */
export const RESULTS_ALWAYS: Readonly<Record<string, string>> = {
  "what is stored has a row, and is not being removed while something refers to it": `
    select p.id, p.log_sha256, o.removing_since from compute.placement p
      left join compute.result_object o on o.sha256 = p.log_sha256
    where ${STORED_LOG} and (o.sha256 is null or o.removing_since is not null)`,
  "results end after their workload, all of them": `
    select w.id, w.settled_at, p.id as placement_id from compute.workload w
      left join compute.placement p on p.workload_id = w.id and p.log_removed_at is null
    where w.results_removed_at is not null and (w.settled_at is null or p.id is not null
      or exists (select 1 from compute.log_chunk c where c.workload_id = w.id))`,
};

/** Names of the objects that rows refer to. */
export const STORED_NAMES = `
  select coalesce(jsonb_agg(distinct p.log_sha256), '[]') from compute.placement p where ${STORED_LOG}`;

const before = (ms: number) => `$3::timestamptz - make_interval(secs => ${ms / 1000})`;

/** Results whose time is over, and bytes that nothing needs. Now is `$3`. */
export const DUE_RESULTS = `
  select 'end the results of ' || w.id from compute.workload w
  where w.settled_at is not null and w.results_removed_at is null and w.terminal_at < ${before(SIMULATED_KEPT.resultsMs)}
  union all select 'remove the bytes ' || o.sha256 from compute.result_object o
  where o.stored_at < ${before(SIMULATED_KEPT.unusedObjectsMs)} and ${UNUSED_RESULT}`;
