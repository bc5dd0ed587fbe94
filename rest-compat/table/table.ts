import type { Table } from "../row.ts";
import { ACCOUNT } from "./account.ts";
import { ASSETS } from "./assets.ts";
import { CONNECTIONS } from "./connections.ts";
import { POOLS } from "./pools.ts";
import { RL } from "./rl.ts";
import { SECRETS } from "./secrets.ts";
import { WEBHOOKS } from "./webhooks.ts";
import { WORKLOADS } from "./workloads.ts";
import { WORKSPACES } from "./workspaces.ts";

/** Every operation that is served. A documented one that is missing here answers 501. */
export const TABLE: Table = {
  ...ACCOUNT,
  ...WORKLOADS,
  ...ASSETS,
  ...SECRETS,
  ...WEBHOOKS,
  ...CONNECTIONS,
  ...WORKSPACES,
  ...POOLS,
  ...RL,
};
