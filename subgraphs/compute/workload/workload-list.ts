import type { Database } from "../../../infra/db/database.ts";
import { type Page, page } from "../../../infra/graphql/connection.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { isOneOf } from "../../../infra/kernel/closed-set.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { Workload } from "./workload.entity.ts";
import { isTerminal, WORKLOAD_STATES, type WorkloadState } from "./workload.machine.ts";

export interface WorkloadListing {
  first: number;
  /** Cursor of the last item seen; not together with an offset. */
  after: string | null;
  /** How many items to skip, for clients that count. New workloads shift the pages. */
  offset: number | null;
  /** States, and the words `active` and `terminal`; other words are ignored. */
  status: readonly string[];
  scope: "team" | "mine";
}

/** A page of workloads, newest first. */
export interface WorkloadPage extends Page<Workload> {
  /** The offset of the next page; null on the last one. */
  nextOffset: number | null;
}

/** Lists the team's workloads, or those of the member whose key it is. */
export async function listWorkloads(db: Database, actor: Actor, listing: WorkloadListing): Promise<WorkloadPage> {
  const { first, after, scope } = listing;
  const offset = listing.offset ?? 0;
  if (!Number.isInteger(offset) || offset < 0)
    throw new Refused(COMMON.invalid_limit, { field: "/offset", message: "offset is a whole number, zero or more." });
  if (after && listing.offset !== null)
    throw new Refused(COMMON.invalid_request, { field: "/offset", message: "Give either after or offset." });
  if (scope === "mine" && actor.memberId === null) throw new Refused(COMMON.attribution_required, { field: "/scope" });
  const states = statesOf(listing.status);
  const owner = scope === "mine" ? actor.memberId : null;
  const found = await page<Workload>({
    list: "workloads",
    first,
    after,
    keyLength: 2,
    keyOf: (w) => [w.createdAt.getTime(), w.id],
    read: (key, limit) =>
      db.rows(
        Workload,
        `where t.tenant_id = $1 and ($2::text is null or t.owner_user_id = $2) and ($3::text[] is null or t.status = any($3))
           and ($4::timestamptz is null or (t.created_at, t.id) < ($4, $5))
         order by t.created_at desc, t.id desc limit $6 offset $7`,
        [actor.tenantId, owner, states, key ? new Date(key[0] as number) : null, key?.[1] ?? null, limit, offset],
      ),
  });
  return { ...found, nextOffset: found.pageInfo.hasNextPage ? offset + found.nodes.length : null };
}

/** The states that words stand for; null, for all, when no word means anything. */
export function statesOf(words: readonly string[]): WorkloadState[] | null {
  const states = words.flatMap((word): readonly WorkloadState[] => {
    if (word === "active") return WORKLOAD_STATES.filter((s) => !isTerminal(s));
    if (word === "terminal") return WORKLOAD_STATES.filter(isTerminal);
    return isOneOf(WORKLOAD_STATES, word) ? [word] : [];
  });
  return states.length === 0 ? null : [...new Set(states)];
}
