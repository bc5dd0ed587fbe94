import type { DocumentNode, ExecutionResult, GraphQLError, OperationDefinitionNode, OperationTypeNode } from "graphql";
import type { Actor } from "../infra/kernel/actor.ts";
import type { Stream } from "./stream.ts";

/** Values by name: variables as a client sent them. */
export type Variables = Readonly<Record<string, unknown>>;

/** What an operation's resolvers may learn about who asks. */
export interface Caller {
  /** Null for an operation without credentials. */
  readonly actor: Actor | null;
  /** One per HTTP request or socket operation; in every log line, span and masked error. */
  readonly requestId: string;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal?: AbortSignal;
}

/** How an operation came in. */
export type Transport = "http" | "ws" | "sse" | "in-process";

/** One operation on its way through the gateway. */
export interface Operation extends Caller {
  readonly document: DocumentNode;
  readonly definition: OperationDefinitionNode;
  readonly name: string | null;
  readonly variables: Variables;
  readonly transport: Transport;
}

/** One request of the query plan to one subgraph. */
export interface SubgraphRequest extends Caller {
  /** The same node for the same step of a plan: executors may cache what they compile for it. */
  readonly document: DocumentNode;
  readonly operationType: OperationTypeNode;
  readonly operationName?: string;
  readonly variables: Variables;
}

/** What a subgraph answers: one result, or a stream of them for a subscription. */
export type SubgraphAnswer = ExecutionResult | AsyncIterable<ExecutionResult>;

/** A subgraph, wherever it runs. The composition root makes one for each of the graph's subgraphs. */
export interface SubgraphExecutor {
  /** The subgraph's name in the supergraph. */
  readonly name: string;
  /** May throw or reject: the gateway turns that into an error at every place whose data is missing. */
  execute(request: SubgraphRequest): SubgraphAnswer | Promise<SubgraphAnswer>;
  /** Frees connections. */
  close?(): Promise<void>;
}

/** A result whose data follows the graph's schema, nulls included. */
export interface Result {
  /** Absent when nothing ran: the request itself was wrong. */
  data?: Record<string, unknown> | null;
  errors?: readonly GraphQLError[];
  extensions?: Record<string, unknown>;
}

/** A subscription's results, or one result that says why it could not be opened. */
export type Opened = Stream<Result> | Result;
