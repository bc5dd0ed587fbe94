import type { EntityClass } from "../../../infra/db/database.ts";
import { AssetImport } from "../asset/asset.entity.ts";
import { importSealContext } from "../asset/import/import-claim.ts";
import { githubSealContext } from "../github-account/github-account.commands.ts";
import { GithubAccount } from "../github-account/github-account.entity.ts";
import { webhookSealContext } from "../webhook/webhook.commands.ts";
import { Webhook } from "../webhook/webhook.entity.ts";
import { sealContext } from "./seal-context.ts";
import { SecretVersion } from "./secret.entity.ts";
import type { Sealed } from "./secret-box.ts";

/** A table whose rows hold a sealed value each. */
export interface SealedTable<T extends Sealed = Sealed> {
  type: EntityClass<T>;
  /** Columns of the primary key, and the row's values of them. */
  key: { columns: readonly string[]; valuesOf(row: T): unknown[] };
  /** The place that the value is bound to. */
  contextOf(row: T): string;
}

/** Every table with sealed values; a change of the master key goes through all of them. */
export const SEALED_TABLES: readonly SealedTable[] = [
  sealed(
    SecretVersion,
    { columns: ["secret_id", "version"], valuesOf: ({ secretId, version }) => [secretId, version] },
    ({ tenantId, secretId, version }) => sealContext(tenantId, secretId, version),
  ),
  sealed(Webhook, { columns: ["tenant_id"], valuesOf: ({ tenantId }) => [tenantId] }, ({ tenantId, version }) =>
    webhookSealContext(tenantId, version),
  ),
  sealed(GithubAccount, { columns: ["tenant_id"], valuesOf: ({ tenantId }) => [tenantId] }, ({ tenantId }) =>
    githubSealContext(tenantId),
  ),
  sealed<AssetImport>(AssetImport, { columns: ["asset_id"], valuesOf: ({ assetId }) => [assetId] }, importSealContext),
];

/** The list treats its tables alike: rows of a table only ever meet that table's own functions. */
function sealed<T extends Sealed>(
  type: EntityClass<T>,
  key: SealedTable<T>["key"],
  contextOf: SealedTable<T>["contextOf"],
): SealedTable {
  return { type, key, contextOf } as unknown as SealedTable;
}
