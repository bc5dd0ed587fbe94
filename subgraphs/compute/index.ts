import { type Reference, type Subgraph, subgraph } from "../../infra/graphql/subgraph.ts";
import { Account } from "./account/account.entity.ts";
import { AccountResolver, accountReference } from "./account/account.resolver.ts";
import { ApiKey } from "./api-key/api-key.entity.ts";
import { ApiKeyResolver, apiKeyReference } from "./api-key/api-key.resolver.ts";
import { StageCheckpointsResolver, WorkloadCheckpointsResolver } from "./checkpoint/checkpoint.resolver.ts";
import { LedgerEntryResolver, WorkloadMoneyResolver } from "./ledger/ledger.resolver.ts";
import { WorkloadLogResolver } from "./log/log.resolver.ts";
import { Member } from "./member/member.entity.ts";
import { MemberResolver, memberReference } from "./member/member.resolver.ts";
import { AssetStub, ConnectionStub, NodeResolver, PoolStub, SecretStub, WorkspaceStub } from "./node.resolver.ts";
import { OutputResolver, WorkloadOutputsResolver } from "./output/output.resolver.ts";
import { Placement } from "./placement/placement.entity.ts";
import { PlacementResolver, placementReference, WorkloadPlacementsResolver } from "./placement/placement.resolver.ts";
import { StageResolver, WorkloadStagesResolver } from "./stage/stage.resolver.ts";
import { Team } from "./team/team.entity.ts";
import { MeResolver, TeamResolver, teamReference } from "./team/team.resolver.ts";
import { Workload } from "./workload/workload.entity.ts";
import { WorkloadConnectionResolver, WorkloadResolver, workloadReference } from "./workload/workload.resolver.ts";
import { WorkloadEventsResolver } from "./workload/workload-events.resolver.ts";

/** Compute's part of the graph. Its resolvers expect a `ComputeContext`. */
export function buildComputeSubgraph(): Subgraph {
  return subgraph(
    "compute",
    [
      AccountResolver,
      ApiKeyResolver,
      LedgerEntryResolver,
      MemberResolver,
      MeResolver,
      NodeResolver,
      OutputResolver,
      PlacementResolver,
      StageCheckpointsResolver,
      StageResolver,
      TeamResolver,
      WorkloadCheckpointsResolver,
      WorkloadConnectionResolver,
      WorkloadEventsResolver,
      WorkloadLogResolver,
      WorkloadMoneyResolver,
      WorkloadOutputsResolver,
      WorkloadPlacementsResolver,
      WorkloadResolver,
      WorkloadStagesResolver,
    ],
    [
      [Account, accountReference],
      [ApiKey, apiKeyReference],
      [Member, memberReference],
      [Placement, placementReference],
      [Team, teamReference],
      [Workload, workloadReference],
      ...[AssetStub, ConnectionStub, PoolStub, SecretStub, WorkspaceStub].map((stub): [typeof stub, Reference] => [
        stub,
        ({ id }) => ({ id }),
      ]),
    ],
  );
}
