import { type Reference, type Subgraph, subgraph } from "../../infra/graphql/subgraph.ts";
import { Asset } from "./asset/asset.entity.ts";
import { AssetResolver, assetReference } from "./asset/asset.resolver.ts";
import { Secret } from "./secret/secret.entity.ts";
import { SecretResolver, secretReference } from "./secret/secret.resolver.ts";

export const resolvers = [AssetResolver, SecretResolver];

export const references: [typeof Asset | typeof Secret, Reference][] = [
  [Asset, assetReference],
  [Secret, secretReference],
];

/** The part of the graph about secrets and assets. Its context is a `DataContext`. */
export function buildDataSubgraph(): Subgraph {
  return subgraph("data", resolvers, references);
}
