import {
  type FieldNode,
  GraphQLError,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  isCompositeType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  type SelectionSetNode,
} from "graphql";
import type { FieldCollector } from "./fields.ts";
import { TYPE_MARKER } from "./normal.ts";

/** Where a value stands in the answer, innermost key first. */
export type Path = { readonly up: Path; readonly key: string | number } | null;

/** One completion: errors that the subgraphs gave, and those that completion adds. */
export interface Run {
  readonly given: readonly GraphQLError[];
  readonly added: GraphQLError[];
}

/** A null that may not stand where it was found, so it moves to the parent. */
export const BUBBLES = Symbol("bubbles");

/** Completes one value: gives the value to put in its place, null where that may stand, or BUBBLES. */
export type Step = (value: unknown, path: Path, run: Run) => unknown;

type Fields = Record<string, unknown>;

/** Compiles the completion of an object of a known type. Members arrive in the order that the specification gives. */
export function objectStep(
  schema: GraphQLSchema,
  collector: FieldCollector,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
): Step {
  const keys: string[] = [];
  const steps: Step[] = [];
  for (const [key, nodes] of collector.collect(type, sets)) {
    keys.push(key);
    steps.push(fieldStep(schema, collector, type, nodes));
  }
  return (value, path, run) => {
    const given = value as Fields;
    const complete: Fields = {};
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      const done = steps[i]!(given[key], { up: path, key }, run);
      if (done === BUBBLES) return BUBBLES;
      complete[key] = done;
    }
    return complete;
  };
}

const asGiven: Step = (value) => value ?? null;

function fieldStep(
  schema: GraphQLSchema,
  collector: FieldCollector,
  type: GraphQLObjectType,
  nodes: FieldNode[],
): Step {
  const name = nodes[0]!.name.value;
  if (name === "__typename") return () => type.name;
  const field = type.getFields()[name];
  if (!field) return asGiven; // __schema and __type: graphql-js has completed them
  const sets = nodes.flatMap((node) => node.selectionSet ?? []);
  return valueStep(schema, collector, field.type, sets, `${type.name}.${name}`);
}

function valueStep(
  schema: GraphQLSchema,
  collector: FieldCollector,
  type: GraphQLOutputType,
  sets: readonly SelectionSetNode[],
  where: string,
): Step {
  if (isLeafType(type)) return asGiven;
  if (!isNonNullType(type)) {
    const inner = nullableStep(schema, collector, type, sets, where);
    return (value, path, run) => {
      const done = inner(value, path, run);
      return done === BUBBLES ? null : done;
    };
  }
  const inner = nullableStep(schema, collector, type.ofType, sets, where);
  return (value, path, run) => {
    const done = inner(value, path, run);
    if (done === null) explainNull(where, path, run);
    return done === null ? BUBBLES : done;
  };
}

function nullableStep(
  schema: GraphQLSchema,
  collector: FieldCollector,
  type: GraphQLOutputType,
  sets: readonly SelectionSetNode[],
  where: string,
): Step {
  if (isListType(type)) return listStep(valueStep(schema, collector, type.ofType, sets, where));
  if (!isCompositeType(type)) return asGiven;
  if (isObjectType(type)) {
    const step = objectStep(schema, collector, type, sets);
    return (value, path, run) => (value === null || value === undefined ? null : step(value, path, run));
  }
  const steps = new Map(
    schema.getPossibleTypes(type).map((possible) => [possible.name, objectStep(schema, collector, possible, sets)]),
  );
  return (value, path, run) => {
    if (value === null || value === undefined) return null;
    // A type that nobody knows: its subgraph has given the error already, or will not say.
    const step = steps.get((value as Fields)[TYPE_MARKER] as string);
    return step ? step(value, path, run) : null;
  };
}

function listStep(item: Step): Step {
  if (item === asGiven) return asGiven;
  return (value, path, run) => {
    if (!Array.isArray(value)) return null;
    const complete: unknown[] = new Array(value.length);
    for (let i = 0; i < value.length; i++) {
      const done = item(value[i], { up: path, key: i }, run);
      if (done === BUBBLES) return BUBBLES;
      complete[i] = done;
    }
    return complete;
  };
}

/** A null in a place that can't hold it gets an error, unless a subgraph has explained it. */
function explainNull(where: string, path: Path, run: Run): void {
  const place = pathOf(path);
  if (run.given.some((error) => startsWith(error.path, place))) return;
  run.added.push(
    new GraphQLError(`Cannot return null for non-nullable field ${where}.`, {
      path: place,
      extensions: { code: "missing_value" },
    }),
  );
}

function pathOf(path: Path): (string | number)[] {
  const keys: (string | number)[] = [];
  for (let at = path; at; at = at.up) keys.push(at.key);
  return keys.reverse();
}

function startsWith(path: readonly (string | number)[] | undefined, start: readonly (string | number)[]): boolean {
  return path !== undefined && start.every((key, i) => path[i] === key);
}
