import {
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  visit,
} from "graphql";
import { BoundedMap } from "../bounded-map.ts";
import type { Result, Variables } from "../request.ts";
import { FieldCollector } from "./fields.ts";
import { documentOf, normalSelection } from "./normal.ts";
import { BUBBLES, objectStep, type Run, type Step } from "./steps.ts";

/** How many combinations of its switches one operation keeps compiled: a client picks them, so there is an end to it. */
const MAX_VARIANTS = 32;

/** One operation with its switches set: what to execute, and how to complete what that gives. */
export interface Variant {
  /** What the subgraphs are asked; null when nothing is. */
  readonly data: DocumentNode | null;
  /** What is asked about the graph's own types; null when nothing is. The router answers no operation that asks both. */
  readonly types: DocumentNode | null;
  /** Null bubbling, order of keys and names of types by the specification. */
  complete(result: ExecutionResult): Result;
}

/** The completion of one operation, compiled once for each combination of its switches. */
export interface Completion {
  /** `variables` are the coerced ones. */
  variant(variables: Variables): Variant;
}

/** Prepares the completion of one operation of a valid document. */
export function completionOf(
  schema: GraphQLSchema,
  source: DocumentNode,
  operation: OperationDefinitionNode,
): Completion {
  const switches = switchesOf(source);
  const variants = new BoundedMap<string, Variant>(MAX_VARIANTS);
  return {
    variant(variables) {
      const key = switches.length === 0 ? "" : switches.map((name) => (variables[name] === true ? "1" : "0")).join("");
      const known = variants.get(key);
      if (known) return known;
      const on = new Set(switches.filter((name) => variables[name] === true));
      const variant = compile(schema, source, operation, on);
      variants.set(key, variant);
      return variant;
    },
  };
}

const TYPE_FIELDS = new Set(["__schema", "__type"]);

function compile(
  schema: GraphQLSchema,
  source: DocumentNode,
  operation: OperationDefinitionNode,
  on: ReadonlySet<string>,
): Variant {
  const root = schema.getRootType(operation.operation);
  if (!root) throw new Error(`the graph has no ${operation.operation} type`);
  const collector = new FieldCollector(schema, source, (name) => on.has(name));
  const fields = [...collector.collect(root, [operation.selectionSet]).values()].flat();
  const data = fields.filter(({ name }) => !name.value.startsWith("__"));
  const types = fields.filter(({ name }) => TYPE_FIELDS.has(name.value));
  const step = objectStep(schema, collector, root, [operation.selectionSet]);
  return {
    data: data.length > 0 ? documentOf(operation, normalSelection(schema, collector, root, [setOf(data)])) : null,
    types: types.length > 0 ? documentOf(operation, setOf(types), fragmentsOf(source)) : null,
    complete: (result) => complete(step, result),
  };
}

function complete(step: Step, result: ExecutionResult): Result {
  const run: Run = { given: result.errors ?? [], added: [] };
  const done = step(result.data ?? {}, null, run);
  const data = done === BUBBLES ? null : (done as Record<string, unknown>);
  const errors = run.added.length > 0 ? [...run.given, ...run.added] : run.given;
  return errors.length > 0 ? { data, errors } : { data };
}

function setOf(selections: FieldNode[]) {
  return { kind: Kind.SELECTION_SET, selections } as const;
}

function fragmentsOf(document: DocumentNode) {
  return document.definitions.filter((d) => d.kind === Kind.FRAGMENT_DEFINITION);
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
