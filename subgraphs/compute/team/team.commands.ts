import type { Database, Queryer, Tx } from "../../../infra/db/database.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { insertMember, type NewMember } from "../member/member.commands.ts";
import type { Member } from "../member/member.entity.ts";
import { requireName } from "./name.ts";
import { Team } from "./team.entity.ts";

/** Makes a team and its first administrator. Throws a refusal for an unusable name or address. */
export function createTeam(
  db: Database,
  input: { name: string; admin: Omit<NewMember, "role"> },
  now: Date,
): Promise<{ team: Team; admin: Member }> {
  return db.command(async (tx) => {
    const team = await insertTeam(tx, input.name, now);
    const admin = await insertMember(tx, team.id, { ...input.admin, role: "admin" }, now);
    return { team, admin };
  });
}

/** The part of `createTeam` that another command's transaction may take in. */
export async function insertTeam(tx: Tx, name: string, now: Date): Promise<Team> {
  const row = { id: newId("team", now), name: requireName(name, "/name"), createdAt: now };
  await tx.sql("insert into compute.team (id, name, created_at) values ($1, $2, $3)", [row.id, row.name, now]);
  return Object.assign(new Team(), row);
}

/** The teams of these ids, in the order asked for; null where there is none. */
export async function teamsById(q: Queryer, ids: readonly string[]): Promise<(Team | null)[]> {
  const found = new Map((await q.rows(Team, "where t.id = any($1)", [ids])).map((t) => [t.id, t]));
  return ids.map((id) => found.get(id) ?? null);
}
