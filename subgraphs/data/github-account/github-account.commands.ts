import type { Database, Queryer } from "../../../infra/db/database.ts";
import type { Actor } from "../../../infra/kernel/actor.ts";
import { Refused } from "../../../infra/kernel/refusal.ts";
import type { FetchPort } from "../../../infra/net/fetch-https.ts";
import type { SecretBox } from "../secret/secret-box.ts";
import { GithubAccount } from "./github-account.entity.ts";
import { GITHUB_ACCOUNT } from "./github-account.refusals.ts";
import { verifyGithubToken } from "./verify-github-token.ts";

export interface GithubAccountDeps {
  db: Database;
  box: SecretBox;
  fetch: FetchPort;
  /** GitHub's API, without a slash at the end. */
  apiUrl: string;
}

/** The place of a team's token, which its ciphertext is bound to. */
export const githubSealContext = (tenantId: string) => `github-account/${tenantId}`;

/** Asks GitHub whose token it is and keeps it, sealed, in place of the one before. */
export async function connectGithub(
  { db, box, fetch, apiUrl }: GithubAccountDeps,
  actor: Actor,
  token: string,
  now: Date,
): Promise<GithubAccount> {
  const login = await verifyGithubToken(fetch, apiUrl, token);
  const sealed = box.seal(Buffer.from(token), githubSealContext(actor.tenantId));
  const account = Object.assign(new GithubAccount(), {
    ...{ tenantId: actor.tenantId, login, connectedAt: now, connectedBy: actor.keyId },
    ...sealed,
  });
  await db.command((tx) =>
    tx.sql(
      `insert into data.github_account (tenant_id, login, connected_at, connected_by, master_key_id, wrapped_key, ciphertext)
       values ($1, $2, $3, $4, $5, $6, $7)
       on conflict (tenant_id) do update set login = excluded.login, connected_at = excluded.connected_at,
         connected_by = excluded.connected_by, master_key_id = excluded.master_key_id,
         wrapped_key = excluded.wrapped_key, ciphertext = excluded.ciphertext`,
      [
        ...[account.tenantId, account.login, now, account.connectedBy],
        ...[sealed.masterKeyId, sealed.wrappedKey, sealed.ciphertext],
      ],
    ),
  );
  return account;
}

/** Forgets the team's account and its token. */
export async function disconnectGithub(db: Database, actor: Actor): Promise<GithubAccount> {
  const account = await db.command(async (tx) => {
    const found = await findGithubAccount(tx, actor.tenantId);
    await tx.sql("delete from data.github_account where tenant_id = $1", [actor.tenantId]);
    return found;
  });
  if (!account) throw new Refused(GITHUB_ACCOUNT.github_not_connected);
  return account;
}

export function findGithubAccount(q: Queryer, tenantId: string): Promise<GithubAccount | null> {
  return q.row(GithubAccount, "where t.tenant_id = $1", [tenantId]);
}

/** Opens a team's account. The answer holds a credential: never to be logged, stored or shown. */
export async function revealGithubAccount(
  q: Queryer,
  box: SecretBox,
  tenantId: string,
): Promise<{ login: string; token: string } | null> {
  const account = await findGithubAccount(q, tenantId);
  if (!account) return null;
  return { login: account.login, token: box.open(account, githubSealContext(tenantId)).toString("utf8") };
}
