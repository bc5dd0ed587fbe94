import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type ExecutionResult, execute, type GraphQLSchema, parse, subscribe, validate } from "graphql";
import type { Database } from "../../infra/db/database.ts";
import type { OfferFact } from "../../infra/drivers/driver.ts";
import { databaseOf } from "../../infra/graphql/context.ts";
import { requestLoaders } from "../../infra/graphql/loaders.ts";
import type { Actor } from "../../infra/kernel/actor.ts";
import { FakeClock } from "../../infra/kernel/clock.ts";
import { Sleepers } from "../../infra/live/wakeups.ts";
import { openDiskStore } from "../../infra/objects/disk-store.ts";
import type { ObjectStore } from "../../infra/objects/object-store.ts";
import { ELSEWHERE } from "../../infra/objects/storage-space.ts";
import { createLogger } from "../../infra/telemetry/logger.ts";
import { allEntities } from "../../roles/entities.ts";
import { foreignNouns } from "../../roles/foreign-nouns.ts";
import { takeEvents } from "../../roles/take-events.ts";
import type { ComputeContext, ComputeServices } from "../../subgraphs/compute/compute-context.ts";
import { buildComputeSubgraph } from "../../subgraphs/compute/index.ts";
import { OfferMarket } from "../../subgraphs/compute/offer/offer-market.ts";
import { syncOffers } from "../../subgraphs/compute/offer/sync-offers.commands.ts";
import type { ComputeSettings } from "../../subgraphs/compute/settings.ts";
import type { WorkloadDeps } from "../../subgraphs/compute/workload/create-workload.ts";
import { assetPins } from "../../subgraphs/data/asset/asset-pins.ts";
import { connectionPins } from "../../subgraphs/data/connection/connection-pins.ts";
import { sinkLoads } from "../../subgraphs/data/load/sink-loads.port.ts";
import { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";
import { SecretPins } from "../../subgraphs/data/secret/secret-pins.ts";
import { pools } from "../../subgraphs/pools/pool/pool.port.ts";
import { MEMBER } from "./actors.ts";
import { computeSettings, insertAccount, insertPlaced, type Placed } from "./compute-fixtures.ts";
import { testDatabase } from "./database.ts";
import { sentStatements } from "./sent-statements.ts";

// biome-ignore lint/suspicious/noExplicitAny: an answer's shape is its document's
export type Answer = ExecutionResult<any, any>;
type Variables = Record<string, unknown>;

/** Compute's part of the graph on a real database and object store, with the other domains' real ports. */
export interface ComputeGraph {
  readonly db: Database;
  readonly clock: FakeClock;
  readonly schema: GraphQLSchema;
  readonly settings: ComputeSettings;
  readonly deps: WorkloadDeps;
  readonly objects: ObjectStore;
  readonly secretBox: SecretBox;
  run(document: string, variables?: Variables, actor?: Actor | null): Promise<Answer>;
  /** As `run`, and the statements outside of commands that were sent meanwhile. */
  watch(document: string, variables?: Variables): Promise<{ answer: Answer; statements: readonly string[] }>;
  /** The stream, or the answer that says why there is none. */
  subscribe(document: string, variables: Variables, actor?: Actor): Promise<AsyncIterableIterator<Answer> | Answer>;
  offer(...facts: Partial<OfferFact>[]): Promise<void>;
  close(): Promise<void>;
}

export async function computeGraph(over: Partial<ComputeSettings> = {}): Promise<ComputeGraph> {
  const database = await testDatabase(allEntities);
  const { db } = database;
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  const logger = createLogger({ level: "silent", role: "test" });
  const folder = mkdtempSync(path.join(tmpdir(), "nodus-graph-"));
  const objects = await openDiskStore(folder);
  const sleepers = new Sleepers((error) => logger.error({ err: error }, "a wake-up failed"));
  db.announceTo((topic) => sleepers.wake(topic));
  db.offerTo(takeEvents);
  const secretBox = new SecretBox({ id: "test", key: randomBytes(32) });
  const settings = { ...computeSettings, ...over };
  const compute: ComputeServices = {
    settings,
    market: new OfferMarket(),
    assets: assetPins,
    secrets: new SecretPins(secretBox),
    connections: connectionPins,
    loads: sinkLoads,
    pools,
    exists: foreignNouns,
    wakeups: { on: (topic, f) => sleepers.on(topic, f), healthy: true },
    objects,
    space: ELSEWHERE,
    logger,
  };
  const { schema } = buildComputeSubgraph();
  const contextOf = (actor: Actor | null): ComputeContext => ({
    ...{ actor, requestId: "test", db: databaseOf(db, actor), clock, compute },
    loader: requestLoaders(),
  });
  const checked = (document: string) => {
    const parsed = parse(document);
    const faults = validate(schema, parsed);
    if (faults.length > 0) throw faults[0]!;
    return parsed;
  };
  const executed = async (document: string, variableValues: Variables, contextValue: ComputeContext) =>
    plain(await execute({ schema, document: checked(document), variableValues, contextValue }));
  return {
    ...{ db, clock, schema, settings, objects, secretBox },
    deps: { ...compute, db },
    run: (document, variables = {}, actor = MEMBER) => executed(document, variables, contextOf(actor)),
    watch: async (document, variables = {}) => {
      const sent = sentStatements();
      try {
        const answer = await executed(document, variables, contextOf(MEMBER));
        return { answer, statements: sent.texts };
      } finally {
        sent.stop();
      }
    },
    subscribe: async (document, variableValues, actor = MEMBER) =>
      (await subscribe({
        ...{ schema, document: checked(document), variableValues },
        contextValue: contextOf(actor),
      })) as AsyncIterableIterator<Answer> | Answer,
    offer: (...facts) => syncOffers(db, "test", facts.map(offerFact), clock.now()).then(() => {}),
    close: async () => {
      await database.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Compute's part of the graph with workloads whose orders are out. */
export interface PlacedGraph extends ComputeGraph {
  /** As many as were asked for, in the order in which they were placed; each may cost a dollar. */
  readonly placed: readonly Placed[];
}

/** The graph with one offer, a team with credits, and `count` of its workloads on their way to run. */
export async function placedGraph(count = 1): Promise<PlacedGraph> {
  const graph = await computeGraph();
  const { db, clock } = graph;
  await graph.offer({});
  await insertAccount(db, clock.now());
  const placed: Placed[] = [];
  for (let i = 0; i < count; i++) placed.push(await insertPlaced(db, clock.now(), { maxCostMicros: 1_000_000n }));
  return { ...graph, placed };
}

/** Results have null prototypes, which equality minds. */
function plain(answer: ExecutionResult): Answer {
  return answer.data ? { ...answer, data: structuredClone(answer.data) } : answer;
}

function offerFact(over: Partial<OfferFact>): OfferFact {
  return {
    sku: "test-cpu",
    region: "test",
    capacity: { key: "machine", cpuMillis: 16_000, memoryMb: 32_768, gpus: 8, slots: 64 },
    computeClass: "vm",
    vcpus: 16,
    hostMemoryGb: 32,
    diskGb: 100,
    networkGbps: null,
    accelerator: null,
    gpuCount: 0,
    deviceMemoryGb: 0,
    rateMicrosPerHour: 100_000n,
    interruptible: false,
    simulated: false,
    isolated: true,
    note: null,
    expectedBootSeconds: 1,
    poolId: null,
    tenantId: null,
    ...over,
  };
}
