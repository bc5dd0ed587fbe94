import type DataLoader from "dataloader";
import type { Database } from "../db/database.ts";
import type { Actor, Scope } from "../kernel/actor.ts";
import type { Clock } from "../kernel/clock.ts";
import { COMMON, Refused } from "../kernel/refusal.ts";

/** What a resolver may use. One is made for each request (or each event of a subscription). */
export interface GraphContext {
  /** Null for a request without credentials; resolvers go through `actorOf`. */
  readonly actor: Actor | null;
  readonly requestId: string;
  readonly db: Database;
  readonly clock: Clock;
  /** Batches reads of one request: `loader("workloadEvents", ids => …)` makes it once. */
  loader<K, V>(name: string, batch: (keys: readonly K[]) => Promise<(V | Error)[]>): DataLoader<K, V>;
}

/** The database as a request uses it: what it commands takes the connections of its caller's team. */
export function databaseOf(db: Database, actor: Actor | null): Database {
  return actor ? db.ofTeam(actor.tenantId) : db;
}

/** The caller, or a refusal; with a scope, the caller's key must have it. */
export function actorOf(context: GraphContext, scope?: Scope): Actor {
  const { actor } = context;
  if (!actor) throw new Refused(COMMON.unauthorized);
  if (scope && !actor.scopes.includes(scope))
    throw new Refused(COMMON.insufficient_scope, { extra: { required_scope: scope } });
  return actor;
}

/** The caller if an administrator of the team. */
export function adminOf(context: GraphContext): Actor {
  const actor = actorOf(context);
  if (actor.role !== "admin" || !actor.scopes.includes("admin")) throw new Refused(COMMON.forbidden);
  return actor;
}
