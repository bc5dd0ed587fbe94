import type { Queryer } from "../../../infra/db/database.ts";
import type { Actor, Scope } from "../../../infra/kernel/actor.ts";
import { isKeyText, keyHash } from "./key-text.ts";

/** A key's last use is written at most this often, and again when what is written lies farther ahead than this. */
const LAST_USE_STEP_MS = 60_000;

interface Resolved {
  id: string;
  team_id: string;
  member_id: string | null;
  name: string;
  scopes: Scope[];
  email: string | null;
  member_name: string | null;
  role: "admin" | "member" | null;
}

/**
 * Reads the key, and notes its use when the last note is a minute old, or lies a minute ahead because the clock was set
 * back. The note takes the row's lock only if it is free, so a request never waits for another one's.
 */
const RESOLVE = `
  with k as (
    select k.id, k.team_id, k.member_id, k.name, k.scopes, k.last_used_at, m.email, m.name as member_name, m.role
      from compute.api_key k left join compute.member m on m.id = k.member_id and m.team_id = k.team_id
     where k.hash = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $2)
  ), used as (
    update compute.api_key set last_used_at = $2
     where id in (select a.id from compute.api_key a join k on k.id = a.id
                   where k.last_used_at is null or k.last_used_at <= $3 or k.last_used_at >= $4
                     for update of a skip locked)
  )
  select id, team_id, member_id, name, scopes, email, member_name, role from k`;

/**
 * Who a key's text stands for, in one statement. Null for a key that is unknown, expired or revoked, or whose member is
 * gone: callers must not be able to tell these apart.
 */
export async function resolveApiKey(q: Queryer, text: string, now: Date): Promise<Actor | null> {
  if (!isKeyText(text)) return null;
  const [stepAgo, stepAhead] = [-LAST_USE_STEP_MS, LAST_USE_STEP_MS].map((ms) => new Date(now.getTime() + ms));
  const [row] = await q.sql<Resolved>(RESOLVE, [keyHash(text), now, stepAgo, stepAhead]);
  if (!row) return null;
  const { id: keyId, team_id: tenantId, scopes } = row;
  if (row.member_id === null)
    return { tenantId, keyId, memberId: null, email: "", name: row.name, role: "team", scopes };
  if (row.role === null) return null;
  return {
    tenantId,
    keyId,
    memberId: row.member_id,
    email: row.email!,
    name: row.member_name!,
    role: row.role,
    scopes,
  };
}
