import type { QueryPlan } from "@graphql-hive/router-query-planner";
import { type DocumentNode, OperationTypeNode, parse } from "graphql";
import type { Caller, SubgraphRequest, Variables } from "./request.ts";

/** The whole plan of an operation that one subgraph answers by itself: nothing is joined, so its answer is the answer. */
export interface SoleStep {
  readonly subgraph: string;
  /** The same node for every request: executors keep what they compile for it. */
  readonly document: DocumentNode;
  readonly operationType: OperationTypeNode;
  readonly operationName?: string;
  /** The operation's variables that the subgraph is told. */
  readonly variableNames: readonly string[];
}

/** One operation of one document. */
export interface PlannedOperation {
  readonly document: DocumentNode;
  readonly operationName?: string;
}

/** Which operations have a sole step: found out once, and kept as long as their document node. */
export class SoleSteps {
  readonly #plan: (operation: PlannedOperation) => Promise<QueryPlan>;
  readonly #known = new WeakMap<DocumentNode, Map<string, SoleStep | null>>();

  constructor(plan: (operation: PlannedOperation) => Promise<QueryPlan>) {
    this.#plan = plan;
  }

  /** Null for an operation of several steps. Rejects when the operation cannot be planned. */
  async of(operation: PlannedOperation): Promise<SoleStep | null> {
    const { document, operationName = "" } = operation;
    const known = this.#known.get(document)?.get(operationName);
    if (known !== undefined) return known;
    const plan = await this.#plan(operation);
    const steps = this.#known.get(document) ?? new Map<string, SoleStep | null>();
    this.#known.set(document, steps);
    // Two first requests at the same time share one node.
    const step = steps.get(operationName) ?? soleStep(plan);
    steps.set(operationName, step);
    return step;
  }
}

/** The only step of a plan; null for a plan that joins answers or changes them. */
function soleStep({ node }: QueryPlan): SoleStep | null {
  const fetch = node?.kind === "Subscription" ? node.primary : node;
  if (fetch?.kind !== "Fetch" || fetch.requires || fetch.inputRewrites || fetch.outputRewrites) return null;
  return {
    subgraph: fetch.serviceName,
    document: parse(fetch.operation, { noLocation: true }),
    operationType: (fetch.operationKind as OperationTypeNode | undefined) ?? OperationTypeNode.QUERY,
    operationName: fetch.operationName,
    variableNames: fetch.variableUsages ?? [],
  };
}

/** The step for one caller. Variables that are left out stay so: the step's document has the operation's defaults. */
export function requestOf(step: SoleStep, caller: Caller, variables: Variables): SubgraphRequest {
  const { document, operationType, operationName, variableNames } = step;
  const told: Record<string, unknown> = {};
  for (const name of variableNames) if (variables[name] !== undefined) told[name] = variables[name];
  const { actor, requestId, signal } = caller;
  return { actor, requestId, signal, document, operationType, operationName, variables: told };
}
