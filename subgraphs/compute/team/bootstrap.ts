import type { Database, Tx } from "../../../infra/db/database.ts";
import { SCOPES } from "../../../infra/kernel/actor.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { COMMON, Refused } from "../../../infra/kernel/refusal.ts";
import { insertApiKey } from "../api-key/api-key.commands.ts";
import { ApiKey } from "../api-key/api-key.entity.ts";
import { isKeyText, keyHash, newKeyText } from "../api-key/key-text.ts";
import { insertMember } from "../member/member.commands.ts";
import { Member } from "../member/member.entity.ts";
import { insertTeam } from "./team.commands.ts";
import { Team } from "./team.entity.ts";

export interface Bootstrapped {
  team: Team;
  admin: Member;
  /** The key's text when this call made the key, to be shown once; null when it was there already. */
  key: string | null;
  /** This call made the team. */
  created: boolean;
}

/**
 * Makes the first team, its administrator and a key, unless there is a team. A `key` that the operator chose is good
 * afterwards in any case, except when it was revoked; without one, a fresh key is made together with the team.
 * Processes that start at once agree: one of them makes it all, the others find it.
 */
export async function bootstrap(db: Database, options: { key?: string | undefined; now: Date }): Promise<Bootstrapped> {
  const { key, now } = options;
  if (key !== undefined && !isKeyText(key))
    throw new Refused(COMMON.invalid_request, {
      message: "The first key must be 16 to 256 printable characters without spaces.",
    });
  return db.command(async (tx) => {
    await tx.sql("select pg_advisory_xact_lock(hashtextextended('compute.bootstrap', 0))");
    const found = await firstTeam(tx);
    const { team, admin } = found ?? (await makeTeam(tx, now));
    const wanted = key ?? (found ? null : newKeyText());
    const made = wanted !== null && (await ensureKey(tx, admin, wanted, now));
    return { team, admin, key: made ? wanted : null, created: !found };
  }, WAITS_ITS_TURN);
}

/** Of many processes that start at once each waits for those before it. */
const WAITS_ITS_TURN = { lockWaitMs: LIMITS.databaseConnectionWaitMs };

async function firstTeam(tx: Tx): Promise<{ team: Team; admin: Member } | null> {
  const team = await tx.row(Team, "order by t.created_at, t.id limit 1");
  if (!team) return null;
  const admin = await tx.row(Member, "where t.team_id = $1 and t.role = 'admin' order by t.created_at, t.id limit 1", [
    team.id,
  ]);
  if (!admin) throw new Error(`the first team ${team.id} has no administrator`);
  return { team, admin };
}

async function makeTeam(tx: Tx, now: Date): Promise<{ team: Team; admin: Member }> {
  const team = await insertTeam(tx, "Default team", now);
  const admin = await insertMember(
    tx,
    team.id,
    { email: "admin@localhost", name: "Administrator", role: "admin" },
    now,
  );
  return { team, admin };
}

async function ensureKey(tx: Tx, admin: Member, key: string, now: Date): Promise<boolean> {
  if (await tx.row(ApiKey, "where t.hash = $1", [keyHash(key)])) return false;
  const holder = { teamId: admin.teamId, memberId: admin.id, createdBy: null, expiresAt: null };
  await insertApiKey(tx, { ...holder, name: "First key", scopes: SCOPES, key }, now);
  return true;
}
