import {
  type ExecutionResult,
  type FieldNode,
  GraphQLError,
  type GraphQLErrorExtensions,
  Kind,
  type SelectionSetNode,
} from "graphql";
import { Refused } from "../infra/kernel/refusal.ts";
import { GATEWAY } from "./refusals.ts";
import type { SubgraphRequest } from "./request.ts";

type Path = readonly (string | number)[];

/**
 * The answer of a subgraph that gave none: an error at each place whose data it should have delivered,
 * so that the others' data stays and no null goes unexplained.
 */
export function failureResult(subgraph: string, request: SubgraphRequest, error: unknown): ExecutionResult {
  const { message, extensions, cause } = explain(subgraph, error);
  return {
    data: null,
    errors: placesOf(request).map((path) => new GraphQLError(message, { path, extensions, originalError: cause })),
  };
}

/**
 * A subgraph's answer with its errors as graphql-js makes them: compiled executors and JSON give lesser objects.
 * When a request failed as a whole, its errors are put at each place whose data is missing.
 */
export function tidyResult(request: SubgraphRequest, result: ExecutionResult): ExecutionResult {
  if (!result.errors) return result;
  const errors = result.errors.map(properError);
  const general = result.data ? [] : errors.filter((error) => !error.path);
  if (general.length === 0) return { ...result, errors };
  const placed = errors.filter((error) => error.path);
  const spread = placesOf(request).flatMap((path) =>
    general.map((error) => properError({ ...errorParts(error), path })),
  );
  return { ...result, errors: [...placed, ...spread] };
}

type ErrorParts = Pick<GraphQLError, "message" | "path" | "originalError"> & { extensions?: GraphQLErrorExtensions };

/** Locations are left out: they point into the subgraph's document, which no client knows. */
function properError(error: ErrorParts): GraphQLError {
  return error instanceof GraphQLError && error.extensions ? error : new GraphQLError(error.message, errorParts(error));
}

function errorParts({ message, path, originalError, extensions }: ErrorParts): ErrorParts {
  return { message, path, originalError, extensions };
}

function explain(
  subgraph: string,
  error: unknown,
): { message: string; extensions: GraphQLErrorExtensions; cause?: Error } {
  const cause = error instanceof Error ? error : new Error(String(error));
  const refused = cause instanceof Refused ? cause : new Refused(GATEWAY.subgraph_unavailable);
  const extensions = { code: refused.kind.code, status: refused.kind.status, fix: refused.fix, subgraph };
  return { message: refused.message, extensions, cause };
}

/** Paths, in the subgraph's own answer, of all that a request asks for directly. */
function placesOf(request: SubgraphRequest): Path[] {
  const operation = request.document.definitions.find((d) => d.kind === Kind.OPERATION_DEFINITION);
  const places: Path[] = [];
  for (const field of fieldsOf(operation?.selectionSet)) {
    const key = keyOf(field);
    if (field.name.value === "_entities") places.push(...placesOfEntities(field, key, request));
    else places.push([key]);
  }
  return places;
}

function placesOfEntities(field: FieldNode, key: string, request: SubgraphRequest): Path[] {
  const argument = field.arguments?.find((a) => a.name.value === "representations")?.value;
  const given = argument?.kind === Kind.VARIABLE ? request.variables[argument.name.value] : undefined;
  const representations = Array.isArray(given) ? (given as { __typename?: string }[]) : [];
  return representations.flatMap(({ __typename }, index) =>
    [...fieldsOf(field.selectionSet, __typename)]
      .filter((f) => f.name.value !== "__typename")
      .map((f): Path => [key, index, keyOf(f)]),
  );
}

/** Fields of a selection, those in inline fragments included; with a type's name, only of fragments that may apply to it. */
function* fieldsOf(set: SelectionSetNode | undefined, typeName?: string): Generator<FieldNode> {
  for (const selection of set?.selections ?? []) {
    if (selection.kind === Kind.FIELD) yield selection;
    else if (selection.kind === Kind.INLINE_FRAGMENT) {
      const condition = selection.typeCondition?.name.value;
      if (!typeName || !condition || condition === typeName) yield* fieldsOf(selection.selectionSet, typeName);
    }
  }
}

function keyOf(field: FieldNode): string {
  return (field.alias ?? field.name).value;
}
