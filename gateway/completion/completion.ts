import {
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  visit,
} from "graphql";
import { BoundedMap } from "../bounded-map.ts";
import type { Result, Variables } from "../request.ts";
import { FieldCollector } from "./fields.ts";
import { withTypeMarkers } from "./markers.ts";
import { BUBBLES, objectStep, type Run, type Step } from "./steps.ts";

/** How many combinations of its switches one operation keeps compiled: a client picks them, so there is an end to it. */
const MAX_VARIANTS = 32;

/** The completion of one operation: null bubbling, key order and types by the specification, compiled ahead. */
export interface Completion {
  /** The document to execute: the source with markers on interfaces and unions. */
  readonly document: DocumentNode;
  /** Completes what executing `document` gave. `variables` are the coerced ones. */
  complete(result: ExecutionResult, variables: Variables): Result;
}

/** Compiles the completion of one operation of a valid document. */
export function compileCompletion(
  schema: GraphQLSchema,
  source: DocumentNode,
  operation: OperationDefinitionNode,
): Completion {
  const rootType = schema.getRootType(operation.operation);
  if (!rootType) throw new Error(`the graph has no ${operation.operation} type`);
  const switches = switchesOf(source);
  const steps = new BoundedMap<string, Step>(MAX_VARIANTS);
  const stepFor = (variables: Variables): Step => {
    const key = switches.map((name) => (variables[name] === true ? "1" : "0")).join("");
    let step = steps.get(key);
    if (!step) {
      const collector = new FieldCollector(schema, source, (name) => variables[name] === true);
      step = objectStep(schema, collector, rootType, [operation.selectionSet]);
      steps.set(key, step);
    }
    return step;
  };
  return {
    document: withTypeMarkers(schema, source),
    complete(result, variables) {
      const run: Run = { given: result.errors ?? [], added: [] };
      const done = stepFor(variables)(result.data ?? {}, null, run);
      const data = done === BUBBLES ? null : (done as Record<string, unknown>);
      const errors = run.added.length > 0 ? [...run.given, ...run.added] : run.given;
      return errors.length > 0 ? { data, errors } : { data };
    },
  };
}

/** Variables that switch parts of the document on and off, in a fixed order. */
function switchesOf(document: DocumentNode): string[] {
  const names = new Set<string>();
  visit(document, {
    Directive(directive) {
      const value = directive.arguments?.[0]?.value;
      const isSwitch = directive.name.value === "skip" || directive.name.value === "include";
      if (isSwitch && value?.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  return [...names].sort();
}
