import { Logger } from "@graphql-hive/logger";
import type { QueryPlan } from "@graphql-hive/router-query-planner";
import { unifiedGraphHandler, useQueryPlan } from "@graphql-hive/router-runtime";
import { filterInternalFieldsAndTypes } from "@graphql-tools/federation";
import type { ExecutionRequest } from "@graphql-tools/utils";
import { buildSchema, type DocumentNode, type ExecutionResult, type GraphQLSchema, OperationTypeNode } from "graphql";
import { lenient } from "./lenient.ts";
import type { Caller, SubgraphAnswer, SubgraphRequest, Variables } from "./request.ts";
import { type PlannedOperation, requestOf, SoleSteps } from "./sole-step.ts";
import { isStream, mapStream } from "./stream.ts";

/** One run of a plan: of a query, of a mutation, of a subscription's opening or of one of its events. */
export interface PlanRun {
  readonly caller: Caller;
  /** Monotonic instant by which all of its steps have to be answered, however many there are. */
  readonly answerByMs: number;
}

/** Sends one step of a plan to a subgraph. Must not throw: a failure is a result with errors. */
export type ExecuteOnSubgraph = (
  subgraph: string,
  request: SubgraphRequest,
  run: PlanRun,
) => SubgraphAnswer | Promise<SubgraphAnswer>;

/** What the router runs: one operation of one document. */
export interface RoutedRequest {
  readonly document: DocumentNode;
  readonly operationName?: string;
  readonly variables: Variables;
  readonly caller: Caller;
}

/**
 * Plans operations over the supergraph and runs the plans. Plans are kept as long as their document node. An operation
 * that one subgraph answers by itself goes there directly.
 */
export interface Router {
  /** The graph as clients see it. */
  readonly schema: GraphQLSchema;
  /** Plans an operation ahead of its first request. Asks no subgraph. */
  plan(operation: PlannedOperation): Promise<void>;
  /** Runs a query or mutation; rejects when it cannot be planned. Nulls are as the subgraphs gave them: results need completion. */
  run(request: RoutedRequest): Promise<ExecutionResult>;
  /** Opens a subscription; a result says why it could not be opened. */
  open(request: RoutedRequest): Promise<SubgraphAnswer>;
}

/** What travels through the router beside the request. */
interface Passage extends PlanRun {
  /** Set while a subscription is opened: takes the request for the stream instead of running it. */
  opening?: { subgraph: string; request: SubgraphRequest } | null;
  /** Set while an operation is only planned. */
  readonly planning?: true;
  /** The event of a subscription that the plan runs for. */
  event?: ExecutionResult;
}

type Execute = (request: ExecutionRequest) => ExecutionResult | Promise<ExecutionResult>;

const read = (sdl: string) => buildSchema(sdl, { assumeValid: true, assumeValidSDL: true });

/** `answerByMs` says by which monotonic instant a run that begins now has to be answered. */
export async function createRouter(
  supergraphSdl: string,
  execute: ExecuteOnSubgraph,
  answerByMs: () => number,
): Promise<Router> {
  const handler = await unifiedGraphHandler({
    unifiedGraph: read(lenient(supergraphSdl)),
    getUnifiedGraphSDL: () => supergraphSdl,
    onSubgraphExecute: ((subgraph: string, request: ExecutionRequest) => dispatch(subgraph, request, execute)) as never,
    log: new Logger({ level: false }),
  });
  const plan = handler.executor as unknown as Execute;
  const pass = async (
    { document, operationName, variables }: RoutedRequest,
    passage: Passage,
  ): Promise<ExecutionResult> => plan({ document, operationName, variables, context: passage });
  const soleSteps = new SoleSteps((operation) => planOf(plan, operation));
  return {
    schema: filterInternalFieldsAndTypes(read(supergraphSdl)),
    async plan(operation) {
      await soleSteps.of(operation);
    },
    async run(request) {
      const { caller, variables } = request;
      const run: PlanRun = { caller, answerByMs: answerByMs() };
      const sole = await soleSteps.of(request);
      if (!sole) return pass(request, run);
      return (await execute(sole.subgraph, requestOf(sole, caller, variables), run)) as ExecutionResult;
    },
    async open(request) {
      const { caller, variables } = request;
      const opening: Passage = { caller, answerByMs: answerByMs(), opening: null };
      const sole = await soleSteps.of(request);
      if (sole) return execute(sole.subgraph, requestOf(sole, caller, variables), opening);
      const refused = await pass(request, opening);
      if (!opening.opening) return refused;
      const source = await execute(opening.opening.subgraph, opening.opening.request, opening);
      if (!isStream(source)) return source;
      // Each event runs the plan anew: the router's own streams keep the errors of all events before.
      return mapStream(source[Symbol.asyncIterator](), (event) =>
        pass(request, { caller, answerByMs: answerByMs(), event }),
      );
    },
  };
}

/**
 * Plans an operation without asking any subgraph; throws when it cannot be planned. The runtime keeps its plans to itself:
 * version 1.4 hands one out only to `useQueryPlan`, by the context that the plan ran with. One that no longer does is a
 * failure at the first operation, as every operation would take the long way and nobody would know.
 */
async function planOf(plan: Execute, { document, operationName }: PlannedOperation): Promise<QueryPlan> {
  const context: Passage = { caller: { actor: null, requestId: "" }, answerByMs: 0, planning: true };
  let failure: unknown;
  try {
    await plan({ document, operationName, variables: {}, context });
  } catch (error) {
    failure = error; // with a plan made it is about the variables, of which there are none yet
  }
  const made: QueryPlan[] = [];
  const { onExecute } = useQueryPlan({ onQueryPlan: (found: QueryPlan | undefined) => found && made.push(found) });
  const hooks = onExecute?.({ context, args: { document } } as never) as
    | { onExecuteDone?(execution: object): void }
    | undefined;
  hooks?.onExecuteDone?.({});
  const [found] = made;
  if (!found) throw failure ?? new Error("the router's runtime does not tell the plan that it made");
  return found;
}

function dispatch(
  subgraph: string,
  request: ExecutionRequest,
  execute: ExecuteOnSubgraph,
): SubgraphAnswer | Promise<SubgraphAnswer> {
  const passage = request.context as Passage;
  const operationType = (request.operationType as OperationTypeNode | undefined) ?? OperationTypeNode.QUERY;
  const { caller, planning } = passage;
  if (planning) return { data: null };
  const step: SubgraphRequest = {
    actor: caller.actor,
    requestId: caller.requestId,
    signal: caller.signal,
    document: request.document,
    operationType,
    operationName: request.operationName,
    variables: (request.variables ?? {}) as Variables,
  };
  if (operationType === "subscription") {
    if (passage.event) return passage.event;
    passage.opening = { subgraph, request: step };
    return { data: null };
  }
  return execute(subgraph, step, passage);
}
