import { type Actor, SCOPES } from "../infra/kernel/actor.ts";
import type { Settings } from "../infra/telemetry/environment.ts";
import { mintApiKey, revokeApiKey } from "../subgraphs/compute/api-key/api-key.commands.ts";
import { ApiKey } from "../subgraphs/compute/api-key/api-key.entity.ts";
import { ClientError } from "./client.ts";
import { teamOf, withDatabase } from "./operator-database.ts";
import { note } from "./progress.ts";
import { table, timeText } from "./table.ts";

/** How many keys a list shows at most. */
const LISTED = 1_000;

interface TeamOption {
  team?: string;
}

/** Whoever has the database acts for every team; a key's history says so. */
function operatorOf(teamId: string): Actor {
  return {
    tenantId: teamId,
    keyId: "operator",
    memberId: null,
    email: "",
    name: "operator",
    role: "admin",
    scopes: SCOPES,
  };
}

/** Makes a key and prints its text, once. */
export function mintKey(
  settings: Settings,
  options: TeamOption & { email?: string; name: string; scope?: string[]; expires?: string },
): Promise<void> {
  return withDatabase(settings, async (db) => {
    const teamId = await teamOf(db, options.team);
    const [member] = options.email
      ? await db.sql<{ id: string; role: string }>(
          "select id, role from compute.member where team_id = $1 and email = $2",
          [teamId, options.email],
        )
      : [];
    if (options.email && !member) throw new ClientError(`The team has no member ${options.email}.`);
    const everything = SCOPES.filter((scope) => scope !== "admin" || member?.role === "admin");
    const expiresAt = options.expires ? new Date(options.expires) : null;
    const { apiKey, key } = await mintApiKey(
      db,
      operatorOf(teamId),
      { name: options.name, memberId: member?.id ?? null, scopes: options.scope ?? everything, expiresAt },
      new Date(),
    );
    process.stdout.write(`${key}\n`);
    process.stderr.write(`${apiKey.id}: ${apiKey.scopes.join(", ")}. The key is shown this once.\n`);
  });
}

/** Lists a team's keys, newest first, without their texts. */
export function listKeys(settings: Settings, options: TeamOption): Promise<void> {
  return withDatabase(settings, async (db) => {
    const teamId = await teamOf(db, options.team);
    const keys = await db.rows(ApiKey, "where t.team_id = $1 order by t.created_at desc limit $2", [
      teamId,
      LISTED + 1,
    ]);
    const now = new Date();
    const cells = keys.slice(0, LISTED).map((key) => cellsOf(key, now));
    process.stdout.write(table([["ID", "KEY", "STATE", "LAST USED", "NAME", "SCOPES"], ...cells]));
    if (keys.length > LISTED) note(`There are more; these are the newest ${LISTED}.`);
  });
}

function cellsOf({ id, lastFour, revokedAt, expiresAt, lastUsedAt, name, scopes }: ApiKey, now: Date): string[] {
  const state = revokedAt ? "revoked" : expiresAt && expiresAt < now ? "expired" : "active";
  return [id, `…${lastFour}`, state, lastUsedAt ? timeText(lastUsedAt) : "never", name, scopes.join(" ")];
}

/** Revokes a key. */
export function revokeKey(settings: Settings, keyId: string, options: TeamOption): Promise<void> {
  return withDatabase(settings, async (db) => {
    const teamId = await teamOf(db, options.team);
    await revokeApiKey(db, operatorOf(teamId), keyId, new Date());
    process.stderr.write(`${keyId} is revoked.\n`);
  });
}
