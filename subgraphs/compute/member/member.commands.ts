import type { Database, Queryer, Tx } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { requireName } from "../team/name.ts";
import { Member, type MemberRole } from "./member.entity.ts";
import { MEMBER } from "./member.refusals.ts";

export interface NewMember {
  email: string;
  name: string;
  role: MemberRole;
}

/** Adds a person to the actor's team; `member_exists` when the address is taken. */
export function addMember(db: Database, actor: Actor, input: NewMember, now: Date): Promise<Member> {
  return db.command((tx) => insertMember(tx, actor.tenantId, input, now));
}

/** The part of `addMember` that another command's transaction may take in. */
export async function insertMember(tx: Tx, teamId: string, input: NewMember, now: Date): Promise<Member> {
  const row = {
    id: newId("member", now),
    teamId,
    email: requireEmail(input.email),
    name: requireName(input.name, "/name"),
    role: input.role,
    createdAt: now,
  };
  const inserted = await tx.sql(
    `insert into compute.member (id, team_id, email, name, role, created_at) values ($1, $2, $3, $4, $5, $6)
     on conflict (team_id, email) do nothing returning id`,
    [row.id, teamId, row.email, row.name, row.role, now],
  );
  if (inserted.length === 0) throw new Refused(MEMBER.member_exists, { field: "/email" });
  return Object.assign(new Member(), row);
}

/** The members of these ids within the team, in the order asked for; null where there is none. */
export async function membersById(q: Queryer, teamId: string, ids: readonly string[]): Promise<(Member | null)[]> {
  const rows = await q.rows(Member, "where t.team_id = $1 and t.id = any($2)", [teamId, ids]);
  const found = new Map(rows.map((m) => [m.id, m]));
  return ids.map((id) => found.get(id) ?? null);
}

function requireEmail(email: string): string {
  const text = email.trim().toLowerCase();
  if (text.length > LIMITS.emailLength || !/^[!-?A-~]+@[!-?A-~]+$/.test(text))
    throw new Refused(MEMBER.invalid_email, { field: "/email" });
  return text;
}
