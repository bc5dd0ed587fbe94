import type { Actor } from "../../../infra/kernel/actor.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { ConnectionKind, ConnectionScope } from "./connection.entity.ts";
import { CONNECTION } from "./connection.refusals.ts";
import { isConnectionName } from "./find-connection.ts";

/** What a caller asks for. */
export interface ConnectionAsk {
  name: string;
  kind: ConnectionKind;
  secret: string;
  scope?: ConnectionScope | null;
  region?: string | null;
  branch?: string | null;
  entity?: string | null;
  project?: string | null;
  liveMode?: boolean | null;
}

/** What a connection is made with, once its credential works. */
export interface CheckedConnection {
  name: string;
  kind: ConnectionKind;
  scope: ConnectionScope;
  region: string | null;
  branch: string | null;
  entity: string | null;
  project: string | null;
  liveMode: boolean;
}

/** Judges everything about a new connection that needs neither the secret nor the service. */
export function checkCreate(ask: ConnectionAsk, actor: Actor): CheckedConnection {
  if (!isConnectionName(ask.name)) throw new Refused(CONNECTION.invalid_connection_name, { field: "/name" });
  const wandb = ask.kind === "wandb";
  const checked: CheckedConnection = {
    name: ask.name,
    kind: ask.kind,
    scope: ask.scope ?? (wandb ? "write" : "read"),
    region: label(ask.region, "/region"),
    branch: label(ask.branch, "/branch"),
    entity: label(ask.entity, "/entity"),
    project: label(ask.project, "/project"),
    liveMode: ask.liveMode ?? false,
  };
  if (checked.branch !== null && ask.kind !== "neon") refuse("/branch", "Only a neon connection has a branch.");
  if (checked.entity !== null && !wandb) refuse("/entity", "Only a wandb connection has an entity.");
  if (checked.project !== null && !wandb) refuse("/project", "Only a wandb connection has a project.");
  if (checked.liveMode) checkLiveMode(checked, actor);
  return checked;
}

/** Live mode gives the credential to whatever the team runs, so it is an administrator's own decision. */
function checkLiveMode({ kind, scope, entity, project }: CheckedConnection, actor: Actor): void {
  if (kind !== "wandb") refuse("/live_mode", "Only a wandb connection has a live mode.");
  if (scope === "read") refuse("/scope", "Live mode needs the scope write or readwrite.");
  if (entity === null) refuse("/entity", "Live mode needs the entity that runs log to.");
  if (project === null) refuse("/project", "Live mode needs the project that runs log to.");
  if (actor.role !== "admin" || actor.memberId === null || !actor.scopes.includes("admin"))
    throw new Refused(CONNECTION.admin_required, { field: "/live_mode" });
}

/** A text that is shown and set in a run's environment; empty means not given. */
function label(text: string | null | undefined, field: string): string | null {
  if (text === undefined || text === null || text === "") return null;
  if (text.length > LIMITS.connectionLabelLength || !/^[\x20-\x7e]+$/.test(text) || text !== text.trim())
    refuse(field, `It is at most ${LIMITS.connectionLabelLength} printable ASCII characters.`);
  return text;
}

function refuse(field: string, message: string): never {
  throw new Refused(CONNECTION.invalid_connection, { field, message });
}
