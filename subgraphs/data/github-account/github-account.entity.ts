import { attr, column, object } from "../../../infra/db/attr.ts";
import type { Sealed } from "../secret/secret-box.ts";

@object(
  "data",
  "github_account",
  "The team's account at GitHub, used for private repositories. Its token cannot be read back.",
)
export class GithubAccount implements Sealed {
  @column.text({ primary: true }) tenantId!: string;
  @attr.text("The account's name at GitHub, as GitHub said when the token was set.") login!: string;
  @attr.at("When its token was set.") connectedAt!: Date;
  /** The key that set it. */
  @column.text() connectedBy!: string;
  @column.text() masterKeyId!: string;
  @column.bytes() wrappedKey!: Buffer;
  @column.bytes() ciphertext!: Buffer;
}
