import { CONNECTION, type ContractWorld, SECRET } from "./contract-world.ts";
import type { Ask } from "./rest-face.ts";

type Asked = (world: ContractWorld) => Ask | Promise<Ask>;

/** What every operation that is served has to prove. */
export interface OperationCase {
  /** A request that succeeds, each time anew, and the status that it is answered with. */
  happy: Asked;
  status: number;
  /**
   * A request that is refused with 400, or 404 where any text may be a name, for what it says, and the field that is
   * told; null for bytes.
   */
  bad: { ask: Asked; field: string | null; status?: 404 } | "says nothing that could be wrong";
  /**
   * What of the team it names. Another team is answered 404 for what is in the path, and is told the field of the body
   * that names what it has not.
   */
  names: "something in its path" | { ask: Asked; field: string } | "nothing of anybody's";
}

const octets = { "content-type": "application/octet-stream" };
const aboutRun = { happy: ({ workloadId }: ContractWorld) => ({ path: { id: workloadId } }), status: 200 } as const;
const ofPath = { names: "something in its path" } as const;
const silent = { bad: "says nothing that could be wrong" } as const;
const ofTeam = { names: "nothing of anybody's" } as const;
const runWith = (query: Record<string, string | number>, more: Record<string, string> = {}): Asked => {
  return ({ workloadId }) => ({ path: { id: workloadId, ...more }, query });
};
const spec = (more: object = {}) => ({ source: { command: ["true"] }, outcome: { max_cost_usd: 1 }, ...more });
const fromAsset = async (world: ContractWorld) =>
  spec({ source: { command: ["true"], asset_id: await world.asset() } });
const keyed = (key: string, body: object): Ask => ({ body, headers: { "idempotency-key": key } });

const ACCOUNT: Readonly<Record<string, OperationCase>> = {
  identity: { happy: () => ({}), status: 200, ...silent, ...ofTeam },
};

const WORKLOADS: Readonly<Record<string, OperationCase>> = {
  createWorkload: {
    happy: (world) => keyed(world.newName(), spec()),
    status: 202,
    bad: {
      ask: (world) => keyed(world.newName(), spec({ inputs: [{ name: "a", uri: "https://x" }] })),
      field: "/inputs/0/uri",
    },
    names: { ask: async (world) => keyed(world.newName(), await fromAsset(world)), field: "/source/asset_id" },
  },
  validateWorkload: {
    happy: () => ({ body: spec() }),
    status: 200,
    bad: { ask: () => ({ body: spec({ outcome: { max_cost_usd: 0 } }) }), field: "/outcome/max_cost_usd" },
    names: { ask: async (world) => ({ body: await fromAsset(world) }), field: "/source/asset_id" },
  },
  listWorkloads: {
    happy: () => ({}),
    status: 200,
    bad: { ask: () => ({ query: { limit: "x" } }), field: "/limit" },
    ...ofTeam,
  },
  getWorkload: { ...aboutRun, ...silent, ...ofPath },
  cancelWorkload: {
    happy: async (world) => ({ path: { id: await world.workload() } }),
    status: 202,
    ...silent,
    ...ofPath,
  },
  listWorkloadEvents: { ...aboutRun, bad: { ask: runWith({ after: "x" }), field: "/after" }, ...ofPath },
  liveLogs: { ...aboutRun, bad: { ask: runWith({ after: "x" }), field: "/after" }, ...ofPath },
  getWorkloadLogs: { ...aboutRun, bad: { ask: runWith({ generation: "x" }), field: "/generation" }, ...ofPath },
  listWorkloadOutputs: { ...aboutRun, ...silent, ...ofPath },
  downloadWorkloadOutput: {
    happy: runWith({ stage: "main" }, { name: "results.tar" }),
    status: 200,
    bad: { ask: runWith({ stage: "other" }, { name: "results.tar" }), field: "/name", status: 404 },
    ...ofPath,
  },
  reloadWorkloadOutput: {
    happy: ({ loadingId }) => ({ path: { id: loadingId, name: "rows" } }),
    status: 202,
    bad: {
      ask: ({ loadingId }) => ({ path: { id: loadingId, name: "rows" }, query: { stage: "other" } }),
      ...{ field: "/name", status: 404 },
    },
    ...ofPath,
  },
  listWorkloadArtifacts: { ...aboutRun, ...silent, ...ofPath },
  getWorkloadLedger: { ...aboutRun, ...silent, ...ofPath },
  getWorkloadRouting: { ...aboutRun, ...silent, ...ofPath },
  listWorkloadRLEvents: { ...aboutRun, bad: { ask: runWith({ limit: "x" }), field: "/limit" }, ...ofPath },
  listRLRecipes: { happy: () => ({}), status: 200, ...silent, ...ofTeam },
};

const query = { kind: "connection_query", sql: "select 1 as a", format: "csv" };

/** Imports that wait for a worker count against a limit, so those before are done first. */
const importing: Asked = async (world) => {
  await world.runExports();
  return { body: { ...query, connection_id: CONNECTION } };
};

const DATA: Readonly<Record<string, OperationCase>> = {
  uploadAsset: {
    happy: (world) => ({ body: Buffer.from(world.newName()), query: { name: "a.txt" }, headers: octets }),
    status: 201,
    bad: { ask: () => ({ body: Buffer.from("PK no zip"), query: { name: "a.zip" }, headers: octets }), field: null },
    ...ofTeam,
  },
  importAsset: {
    happy: importing,
    status: 202,
    bad: { ask: () => ({ body: { ...query, connection_id: CONNECTION, format: "xml" } }), field: "/format" },
    names: { ask: importing, field: "/connection_id" },
  },
  listAssets: { happy: () => ({}), status: 200, ...silent, ...ofTeam },
  getAsset: { happy: async (world) => ({ path: { id: await world.asset() } }), status: 200, ...silent, ...ofPath },
  deleteAsset: { happy: async (world) => ({ path: { id: await world.asset() } }), status: 204, ...silent, ...ofPath },
  putSecret: {
    happy: (world) => ({ body: { name: world.newName(), value: "a value" } }),
    status: 201,
    bad: { ask: () => ({ body: { name: "no name", value: "a value" } }), field: "/name" },
    ...ofTeam,
  },
  listSecrets: { happy: () => ({}), status: 200, ...silent, ...ofTeam },
  deleteSecret: {
    happy: async (world) => ({ path: { name: await world.secret() } }),
    status: 204,
    ...silent,
    ...ofPath,
  },
  putWebhook: {
    happy: () => ({ body: { url: "https://hooks.example.com/a" } }),
    status: 200,
    bad: { ask: () => ({ body: { url: "ftp://hooks.example.com" } }), field: "/url" },
    ...ofTeam,
  },
  getWebhook: { happy: async (world) => world.webhook().then(() => ({})), status: 200, ...silent, ...ofTeam },
  deleteWebhook: { happy: async (world) => world.webhook().then(() => ({})), status: 200, ...silent, ...ofTeam },
  createConnection: {
    happy: (world) => ({ body: { name: world.newName(), kind: "postgres", secret: SECRET } }),
    status: 201,
    bad: { ask: () => ({ body: { name: "1a", kind: "postgres", secret: SECRET } }), field: "/name" },
    names: {
      ask: (world) => ({ body: { name: world.newName(), kind: "postgres", secret: SECRET } }),
      field: "/secret",
    },
  },
  listConnections: { happy: () => ({}), status: 200, ...silent, ...ofTeam },
  getConnection: { happy: () => ({ path: { id: CONNECTION } }), status: 200, ...silent, ...ofPath },
  verifyConnection: { happy: () => ({ path: { id: CONNECTION } }), status: 200, ...silent, ...ofPath },
  deleteConnection: {
    happy: async (world) => ({ path: { id: await world.connection() } }),
    status: 204,
    ...silent,
    ...ofPath,
  },
};

const CAPACITY: Readonly<Record<string, OperationCase>> = {
  createPool: {
    happy: (world) => ({ body: { name: world.newName() } }),
    status: 201,
    bad: { ask: () => ({ body: { name: "" } }), field: "/name" },
    ...ofTeam,
  },
  listPools: { happy: () => ({}), status: 200, ...silent, ...ofTeam },
  getPool: { happy: async (world) => ({ path: { id: await world.pool() } }), status: 200, ...silent, ...ofPath },
  createWorkspace: {
    happy: (world) => ({ body: { name: world.newName(), size_gb: 1 } }),
    status: 201,
    bad: { ask: () => ({ body: { name: "a", size_gb: 0 } }), field: "/size_gb" },
    ...ofTeam,
  },
  listWorkspaces: { happy: () => ({}), status: 200, ...silent, ...ofTeam },
};

/** A case for each operation of REST that is served. */
export const OPERATION_CASES: Readonly<Record<string, OperationCase>> = {
  ...ACCOUNT,
  ...WORKLOADS,
  ...DATA,
  ...CAPACITY,
};
