import { CONNECTION, type ContractWorld, SECRET } from "./contract-world.ts";

type Input = Readonly<Record<string, unknown>>;

/** What every mutation of the graph has to prove. */
export interface MutationCase {
  /** An input that succeeds, each time anew; null where the mutation takes none. */
  input: (world: ContractWorld) => Input | null | Promise<Input | null>;
  /** The code that another team gets for naming what is not its own. */
  foreign: string | "names nothing of anybody's";
}

const none = { foreign: "names nothing of anybody's" } as const;
const workload = async (world: ContractWorld) => ({
  source: { command: ["true"], assetId: await world.asset() },
  outcome: { maxCostUsd: 1 },
});

/** A case for each mutation. */
export const MUTATION_CASES: Readonly<Record<string, MutationCase>> = {
  addMember: { input: (world) => ({ email: `${world.newName()}@example.com`, name: "New" }), ...none },
  createApiKey: { input: (world) => ({ name: world.newName(), scopes: ["workloads:read"] }), ...none },
  revokeApiKey: { input: async (world) => ({ id: await world.apiKey() }), foreign: "not_found" },
  grantCredit: { input: () => ({ amountUsd: 1 }), ...none },
  setAccountLimits: { input: () => ({ concurrentRunsLimit: 100 }), ...none },
  createWorkload: {
    input: async (world) => ({ idempotencyKey: world.newName(), workload: await workload(world) }),
    foreign: "asset_not_found",
  },
  validateWorkload: { input: async (world) => ({ workload: await workload(world) }), foreign: "asset_not_found" },
  cancelWorkload: { input: async (world) => ({ id: await world.workload() }), foreign: "not_found" },
  reloadOutput: { input: ({ loadingId }) => ({ workloadId: loadingId, name: "rows" }), foreign: "not_found" },
  importAsset: {
    input: async (world) => {
      await world.runExports();
      return { kind: "connection_query", connectionId: CONNECTION, sql: "select 1 as a", format: "csv" };
    },
    foreign: "connection_not_found",
  },
  deleteAsset: { input: async (world) => ({ id: await world.asset() }), foreign: "not_found" },
  putSecret: { input: (world) => ({ name: world.newName(), value: "a value" }), ...none },
  retireSecret: { input: async (world) => ({ name: await world.secret() }), foreign: "secret_not_found" },
  createConnection: {
    input: (world) => ({ name: world.newName(), kind: "postgres", secret: SECRET }),
    foreign: "secret_not_found",
  },
  verifyConnection: { input: () => ({ id: CONNECTION }), foreign: "not_found" },
  deleteConnection: { input: async (world) => ({ id: await world.connection() }), foreign: "not_found" },
  connectGithub: { input: () => ({ token: "ghp_one" }), ...none },
  disconnectGithub: { input: async (world) => world.github().then(() => null), ...none },
  putWebhook: { input: () => ({ url: "https://hooks.example.com/a" }), ...none },
  deleteWebhook: { input: async (world) => world.webhook().then(() => null), ...none },
  redeliverWebhook: { input: async (world) => ({ id: await world.delivery() }), foreign: "not_found" },
  createPool: { input: (world) => ({ name: world.newName() }), ...none },
  renamePool: { input: async (world) => ({ id: await world.pool(), name: world.newName() }), foreign: "not_found" },
  createWorkspace: { input: (world) => ({ name: world.newName(), sizeGb: 1 }), ...none },
};
