import { type Actor, SCOPES, type Scope } from "../../infra/kernel/actor.ts";
import { TENANT } from "./compute-fixtures.ts";

/** A person of the compute fixtures' team, with every scope. */
export const MEMBER: Actor = {
  tenantId: TENANT,
  keyId: "key_member",
  memberId: "mem_one",
  email: "one@example.com",
  name: "One",
  role: "admin",
  scopes: SCOPES,
};
/** A key of the compute fixtures' team that belongs to nobody. */
export const TEAM_KEY: Actor = { ...MEMBER, keyId: "key_team", memberId: null, email: "", role: "team" };
/** Somebody of another team. */
export const STRANGER: Actor = { ...MEMBER, tenantId: "team_other", keyId: "key_other", memberId: "mem_other" };

/** A key of this team that belongs to nobody: every scope of it, unless told otherwise. */
export function teamKey(tenantId: string, scopes: readonly Scope[] = SCOPES): Actor {
  return { tenantId, keyId: "key_1", memberId: null, email: "", name: "", role: "team", scopes };
}

/** A person who administers this team, with every scope. */
export function administrator(tenantId: string): Actor {
  const person = { memberId: "mem_admin", email: "a@example.com", name: "A" };
  return { tenantId, keyId: "key_admin", ...person, role: "admin", scopes: SCOPES };
}

/** Teams that no other test of the file knows, each asked for by a key of its own team. */
export function newTeams(): () => Actor {
  let teams = 0;
  return () => teamKey(`team_${++teams}`);
}
