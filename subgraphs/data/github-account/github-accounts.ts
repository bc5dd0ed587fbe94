import type { Queryer } from "../../../infra/db/database.ts";
import type { GithubAccountPort } from "../published.ts";
import type { SecretBox } from "../secret/secret-box.ts";
import { revealGithubAccount } from "./github-account.commands.ts";

/** The teams' accounts for those who fetch repositories. */
export class GithubAccounts implements GithubAccountPort {
  readonly #box: SecretBox;

  constructor(box: SecretBox) {
    this.#box = box;
  }

  reveal(q: Queryer, { tenantId }: { tenantId: string }): Promise<{ login: string; token: string } | null> {
    return revealGithubAccount(q, this.#box, tenantId);
  }
}
