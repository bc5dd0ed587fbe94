import { type Reference, type Subgraph, subgraph } from "../../infra/graphql/subgraph.ts";
import { AccountEventResolver } from "./account-event/account-event.resolver.ts";
import { Asset } from "./asset/asset.entity.ts";
import { AssetResolver, assetReference } from "./asset/asset.resolver.ts";
import { AssetImportResolver } from "./asset/import/import.resolver.ts";
import { Connection } from "./connection/connection.entity.ts";
import { ConnectionResolver, connectionReference } from "./connection/connection.resolver.ts";
import { WebhookDeliveryResolver } from "./delivery/delivery.resolver.ts";
import { AssetExportResolver, QueryExportResolver } from "./export/export.resolver.ts";
import { GithubAccountResolver } from "./github-account/github-account.resolver.ts";
import { SinkLoadResolver } from "./load/load.resolver.ts";
import { Secret } from "./secret/secret.entity.ts";
import { SecretResolver, secretReference } from "./secret/secret.resolver.ts";
import { WebhookResolver } from "./webhook/webhook.resolver.ts";

const resolvers = [
  AssetResolver,
  AssetImportResolver,
  AssetExportResolver,
  QueryExportResolver,
  SinkLoadResolver,
  GithubAccountResolver,
  ConnectionResolver,
  SecretResolver,
  AccountEventResolver,
  WebhookDeliveryResolver,
  WebhookResolver,
];

const references: [typeof Asset | typeof Connection | typeof Secret, Reference][] = [
  [Asset, assetReference],
  [Connection, connectionReference],
  [Secret, secretReference],
];

/** The part of the graph about assets, connections, secrets and what is told of them. Its context is a `DataContext`. */
export function buildDataSubgraph(): Subgraph {
  return subgraph("data", resolvers, references);
}
