import { type Exists, existsIn } from "../infra/db/exists.ts";
import type { ForeignNoun } from "../subgraphs/compute/foreign-nouns.ts";
import { Asset } from "../subgraphs/data/asset/asset.entity.ts";
import { findConnection } from "../subgraphs/data/connection/find-connection.ts";
import { Secret } from "../subgraphs/data/secret/secret.entity.ts";
import { Pool } from "../subgraphs/pools/pool/pool.entity.ts";
import { Workspace } from "../subgraphs/sandboxes/workspace/workspace.entity.ts";

/** What `node` asks of the other domains. */
export const foreignNouns: Record<ForeignNoun, Exists> = {
  asset: existsIn(Asset),
  secret: existsIn(Secret),
  connection: async (q, tenantId, id) => (await findConnection(q, { tenantId, idOrName: id })) !== null,
  pool: existsIn(Pool),
  workspace: existsIn(Workspace),
};
