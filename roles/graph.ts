import type { ContextFor } from "../gateway/executors/in-process.ts";
import { databaseOf, type GraphContext } from "../infra/graphql/context.ts";
import { requestLoaders } from "../infra/graphql/loaders.ts";
import type { Subgraph } from "../infra/graphql/subgraph.ts";
import type { ComputeServices } from "../subgraphs/compute/compute-context.ts";
import { buildComputeSubgraph } from "../subgraphs/compute/index.ts";
import { workloads } from "../subgraphs/compute/workload/workload.port.ts";
import { buildDataSubgraph } from "../subgraphs/data/index.ts";
import { buildPoolsSubgraph } from "../subgraphs/pools/index.ts";
import { buildRlSubgraph } from "../subgraphs/rl/index.ts";
import { buildSandboxesSubgraph } from "../subgraphs/sandboxes/index.ts";
import { dataServices } from "./data-services.ts";
import type { Parts } from "./parts.ts";

const BUILDERS: Record<string, () => Subgraph> = {
  compute: buildComputeSubgraph,
  data: buildDataSubgraph,
  pools: buildPoolsSubgraph,
  rl: buildRlSubgraph,
  sandboxes: buildSandboxesSubgraph,
};

/** Names of the graph's parts, in the order of composition. */
export const SUBGRAPH_NAMES = Object.keys(BUILDERS);

/** One part of the graph. */
export function buildSubgraph(name: string): Subgraph {
  const build = BUILDERS[name];
  if (!build) throw new Error(`there is no subgraph ${name}; there are ${SUBGRAPH_NAMES.join(", ")}`);
  return build();
}

/** What every resolver is given, whichever subgraph it is in: ports are bound to implementations here. */
export function contextFor(parts: Parts, compute: ComputeServices): ContextFor {
  const { db, clock } = parts;
  const shared = {
    clock,
    compute,
    data: dataServices(parts),
    rl: { workloads },
  };
  return ({ actor, requestId }): GraphContext => ({
    ...shared,
    db: databaseOf(db, actor),
    ...{ actor, requestId, loader: requestLoaders() },
  });
}
