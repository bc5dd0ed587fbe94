import { Database } from "../../infra/db/database.ts";
import { SCOPES } from "../../infra/kernel/actor.ts";
import type { Micros } from "../../infra/kernel/micros.ts";
import { allEntities } from "../../roles/entities.ts";
import { openAccount } from "../../subgraphs/compute/account/account.commands.ts";
import { insertApiKey } from "../../subgraphs/compute/api-key/api-key.commands.ts";
import { newKeyText } from "../../subgraphs/compute/api-key/key-text.ts";
import { createTeam } from "../../subgraphs/compute/team/team.commands.ts";
import type { Platform } from "./platform.ts";
import type { PlatformClient } from "./platform-client.ts";

export interface TeamWish {
  creditMicros?: Micros;
  paymentMethod?: boolean;
  concurrentRunsLimit?: number;
}

/** Another team of a running platform, with an account and an administrator's key, made by the commands that make teams. */
export async function anotherTeam(
  platform: Pick<Platform, "databaseUrl" | "admin">,
  wish: TeamWish = {},
): Promise<{ teamId: string; client: PlatformClient }> {
  const { creditMicros = 100_000_000n, paymentMethod = true, concurrentRunsLimit = 1_000 } = wish;
  const db = await Database.open({ url: platform.databaseUrl, entities: allEntities, poolSize: 2 });
  try {
    const now = new Date();
    const { team, admin } = await createTeam(
      db,
      { name: "Another team", admin: { email: `${crypto.randomUUID()}@example.com`, name: "Somebody else" } },
      now,
    );
    const key = newKeyText();
    const holder = { teamId: team.id, memberId: admin.id, createdBy: null, expiresAt: null };
    await db.command(async (tx) => {
      await openAccount(tx, { teamId: team.id, creditMicros, paymentMethod, concurrentRunsLimit }, now);
      await insertApiKey(tx, { ...holder, name: "Key of a test", scopes: SCOPES, key }, now);
    });
    return { teamId: team.id, client: platform.admin.as(key) };
  } finally {
    await db.close();
  }
}
