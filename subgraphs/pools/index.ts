import { type Reference, type Subgraph, subgraph } from "../../infra/graphql/subgraph.ts";
import { Pool } from "./pool/pool.entity.ts";
import { PoolResolver, poolReference } from "./pool/pool.resolver.ts";

const resolvers = [PoolResolver];

const references: [typeof Pool, Reference][] = [[Pool, poolReference]];

/** The part of the graph about a team's own machines. */
export function buildPoolsSubgraph(): Subgraph {
  return subgraph("pools", resolvers, references);
}
