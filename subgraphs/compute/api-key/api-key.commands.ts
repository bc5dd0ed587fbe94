import type { Database, Queryer, Tx } from "../../../infra/db/database.ts";
import { type Actor, SCOPES, type Scope } from "../../../infra/kernel/actor.ts";
import { isOneOf } from "../../../infra/kernel/closed-set.ts";
import { isId, newId } from "../../../infra/kernel/ids.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { Member } from "../member/member.entity.ts";
import { requireName } from "../team/name.ts";
import { ApiKey, type ApiKeyAction } from "./api-key.entity.ts";
import { API_KEY } from "./api-key.refusals.ts";
import { keyHash, newKeyText } from "./key-text.ts";

export interface NewApiKey {
  name: string;
  /** Null for a key of the team itself. */
  memberId: string | null;
  scopes: readonly string[];
  expiresAt: Date | null;
}

/** A key and its text, which is known only now. */
export interface MintedApiKey {
  apiKey: ApiKey;
  key: string;
}

/** Topic of one key's changes; whoever serves a stream for it listens here. */
const keyTopic = (keyId: string): string => `key:${keyId}`;
/** Topic of all keys' changes, for caches of resolved keys. */
export const KEYS_TOPIC = "keys";

/**
 * Makes a key of the actor's team. No key gives more than the one that makes it: a wider scope is refused as
 * `insufficient_scope` and written to the maker's history.
 */
export async function mintApiKey(db: Database, actor: Actor, input: NewApiKey, now: Date): Promise<MintedApiKey> {
  const scopes = requireScopes(input.scopes);
  const refused = scopes.filter((s) => !actor.scopes.includes(s));
  if (refused.length > 0) {
    await recordScopeRefusal(db, actor, refused, now);
    throw new Refused(COMMON.insufficient_scope, { field: "/scopes", extra: { required_scope: refused[0] } });
  }
  if (input.expiresAt && input.expiresAt <= now) throw new Refused(API_KEY.invalid_expiry, { field: "/expires_at" });
  return db.command(async (tx) => {
    await requireHolder(tx, actor.tenantId, input.memberId, scopes);
    const key = newKeyText();
    const apiKey = await insertApiKey(
      tx,
      { ...input, scopes, teamId: actor.tenantId, createdBy: actor.keyId, key },
      now,
    );
    return { apiKey, key };
  });
}

/** The part of minting that another command's transaction may take in; nothing is checked but the name. */
export async function insertApiKey(
  tx: Tx,
  input: NewApiKey & { teamId: string; createdBy: string | null; key: string },
  now: Date,
): Promise<ApiKey> {
  const row: ApiKey = Object.assign(new ApiKey(), {
    id: newId("apiKey", now),
    teamId: input.teamId,
    memberId: input.memberId,
    name: requireName(input.name, "/name"),
    hash: keyHash(input.key),
    lastFour: input.key.slice(-4),
    scopes: [...input.scopes],
    expiresAt: input.expiresAt,
    revokedAt: null,
    lastUsedAt: null,
    createdAt: now,
    createdBy: input.createdBy,
  });
  await tx.sql(
    `insert into compute.api_key (id, team_id, member_id, name, hash, last_four, scopes, expires_at, created_at, created_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [row.id, row.teamId, row.memberId, row.name, row.hash, row.lastFour, row.scopes, row.expiresAt, now, row.createdBy],
  );
  await audit(tx, row, "created", { byKeyId: input.createdBy, detail: row.scopes.join(" ") }, now);
  return row;
}

/** Ends a key at once; its open streams end with it. Revoking a revoked key changes nothing. */
export function revokeApiKey(db: Database, actor: Actor, id: string, now: Date): Promise<ApiKey> {
  return db.command(async (tx) => {
    if (!isId("apiKey", id)) throw new Refused(COMMON.not_found);
    const apiKey = await tx.row(ApiKey, "where t.team_id = $1 and t.id = $2 for update", [actor.tenantId, id]);
    if (!apiKey) throw new Refused(COMMON.not_found);
    if (apiKey.revokedAt) return apiKey;
    await tx.sql("update compute.api_key set revoked_at = $3 where team_id = $1 and id = $2", [
      actor.tenantId,
      id,
      now,
    ]);
    await audit(tx, apiKey, "revoked", { byKeyId: actor.keyId, detail: null }, now);
    tx.wake(keyTopic(id));
    tx.wake(KEYS_TOPIC);
    return Object.assign(apiKey, { revokedAt: now });
  });
}

/** Writes into a key's history that it asked for more than it has. */
function recordScopeRefusal(db: Database, actor: Actor, scopes: readonly Scope[], now: Date): Promise<void> {
  const row = { id: actor.keyId, teamId: actor.tenantId };
  return db.command((tx) => audit(tx, row, "scope_refused", { byKeyId: actor.keyId, detail: scopes.join(" ") }, now));
}

async function audit(
  q: Queryer,
  key: { id: string; teamId: string },
  action: ApiKeyAction,
  by: { byKeyId: string | null; detail: string | null },
  now: Date,
): Promise<void> {
  await q.sql(
    `insert into compute.api_key_audit (id, team_id, key_id, action, by_key_id, detail, created_at)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [newId("event", now), key.teamId, key.id, action, by.byKeyId, by.detail, now],
  );
}

function requireScopes(scopes: readonly string[]): Scope[] {
  const known = scopes.filter((s) => isOneOf(SCOPES, s)) as Scope[];
  if (known.length === 0 || known.length !== scopes.length || new Set(known).size !== known.length)
    throw new Refused(API_KEY.invalid_scopes, {
      field: "/scopes",
      fix: `Name some of ${SCOPES.join(", ")}, each once.`,
    });
  return known;
}

async function requireHolder(tx: Tx, teamId: string, memberId: string | null, scopes: readonly Scope[]): Promise<void> {
  const member =
    memberId &&
    isId("member", memberId) &&
    (await tx.row(Member, "where t.team_id = $1 and t.id = $2", [teamId, memberId]));
  if (memberId && !member) throw new Refused(API_KEY.member_not_found, { field: "/member_id" });
  if (scopes.includes("admin") && !(member && member.role === "admin"))
    throw new Refused(API_KEY.invalid_scopes, {
      field: "/scopes",
      message: "Only a key of an administrator may have the scope admin.",
    });
}
