import type { Database, Queryer } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { newId } from "../../../infra/kernel/ids.ts";
import { LIMITS } from "../../../infra/kernel/limits.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import { Workspace } from "./workspace.entity.ts";
import { WORKSPACE } from "./workspace.refusals.ts";

/**
 * Makes an empty workspace. The name is the key: the same name and size answers the workspace that is there, another size
 * is refused as `workspace_exists`.
 */
export function createWorkspace(
  db: Database,
  actor: Actor,
  input: { name: string; sizeGb: number },
  now: Date,
): Promise<{ workspace: Workspace; replayed: boolean }> {
  return db.command(async (tx) => {
    requireWorkspace(input);
    await tx.sql("select pg_advisory_xact_lock(hashtextextended('sandboxes.workspace/' || $1, 0))", [actor.tenantId]);
    const there = await tx.row(Workspace, "where t.tenant_id = $1 and t.name = $2", [actor.tenantId, input.name]);
    if (there && there.sizeGb !== input.sizeGb)
      throw new Refused(WORKSPACE.workspace_exists, {
        field: "/size_gb",
        message: `The team's workspace ${input.name} has ${there.sizeGb} GiB.`,
      });
    if (there) return { workspace: there, replayed: true };
    const [row] = await tx.sql<{ there: bigint }>(
      "select count(*) as there from sandboxes.workspace where tenant_id = $1",
      [actor.tenantId],
    );
    if (row!.there >= BigInt(LIMITS.workspacesPerTeam)) throw new Refused(WORKSPACE.workspace_limit);
    const workspace = tx.em.create(Workspace, {
      id: newId("workspace", now),
      tenantId: actor.tenantId,
      name: input.name,
      sizeGb: input.sizeGb,
      holderId: null,
      savedAt: null,
      storedBytes: null,
      lastError: null,
      savingForTermination: false,
      billingStatus: "disabled_no_approved_storage_rate",
      createdAt: now,
    });
    await tx.em.persist(workspace).flush();
    return { workspace, replayed: false };
  });
}

/** The team's workspaces, newest first, before one. */
export function listWorkspaces(
  q: Queryer,
  tenantId: string,
  before: string | null,
  limit: number,
): Promise<Workspace[]> {
  return q.rows(Workspace, "where t.tenant_id = $1 and ($2::text is null or t.id < $2) order by t.id desc limit $3", [
    tenantId,
    before,
    limit,
  ]);
}

/** The narrower pattern of mounting holds for making as well: a workspace that could not be mounted would be of no use. */
function requireWorkspace({ name, sizeGb }: { name: string; sizeGb: number }): void {
  if (!/^[A-Za-z0-9_.-]{1,128}$/.test(name)) throw new Refused(WORKSPACE.invalid_name, { field: "/name" });
  if (!(Number.isFinite(sizeGb) && sizeGb > 0))
    throw new Refused(WORKSPACE.invalid_workspace_size, { field: "/size_gb" });
  if (sizeGb > LIMITS.workspaceSizeGb)
    throw new Refused(WORKSPACE.workspace_too_large, {
      field: "/size_gb",
      message: `A workspace may have ${LIMITS.workspaceSizeGb} GiB.`,
    });
}
