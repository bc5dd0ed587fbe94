import { type Reference, type Subgraph, subgraph } from "../../infra/graphql/subgraph.ts";
import { Asset } from "./asset/asset.entity.ts";
import { AssetResolver, assetReference } from "./asset/asset.resolver.ts";
import { Connection } from "./connection/connection.entity.ts";
import { ConnectionResolver, connectionReference } from "./connection/connection.resolver.ts";
import { Secret } from "./secret/secret.entity.ts";
import { SecretResolver, secretReference } from "./secret/secret.resolver.ts";

export const resolvers = [AssetResolver, ConnectionResolver, SecretResolver];

export const references: [typeof Asset | typeof Connection | typeof Secret, Reference][] = [
  [Asset, assetReference],
  [Connection, connectionReference],
  [Secret, secretReference],
];

/** The part of the graph about assets, connections and secrets. Its context is a `DataContext`. */
export function buildDataSubgraph(): Subgraph {
  return subgraph("data", resolvers, references);
}
