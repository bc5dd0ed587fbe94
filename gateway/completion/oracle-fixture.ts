import { execute, type GraphQLResolveInfo, type GraphQLSchema, getOperationAST, parse, validate } from "graphql";
import type { Variables } from "../request.ts";
import { completionOf } from "./completion.ts";
import { TYPE_MARKER } from "./normal.ts";

/** A tree of raw values: what the router hands on. Objects of interfaces and unions say their type under the marker. */
export type Raw = Record<string, unknown>;

/** Data with its order of keys, and the places of errors. */
export interface Outcome {
  data: string;
  places: string[];
}

/** What graphql-js makes of raw values when each field is read by its response key. */
export function byGraphqlJs(schema: GraphQLSchema, query: string, raw: Raw, variables: Variables = {}): Outcome {
  const document = parse(query);
  const problems = validate(schema, document);
  if (problems.length > 0) throw new Error(`the case itself is wrong: ${problems[0]!.message}`);
  const result = execute({
    schema,
    document,
    rootValue: structuredClone(raw),
    variableValues: variables,
    fieldResolver: (source: Raw, _args: unknown, _context: unknown, info: GraphQLResolveInfo) =>
      source[info.path.key as string],
    typeResolver: (value: Raw) => value[TYPE_MARKER] as string,
  });
  if (result instanceof Promise) throw new Error("raw values are never promises");
  return { data: JSON.stringify(result.data), places: (result.errors ?? []).map((e) => e.path!.join(".")) };
}

/** What completion makes of them. */
export function byCompletion(schema: GraphQLSchema, query: string, raw: Raw, variables: Variables = {}): Outcome {
  const document = parse(query);
  const operation = getOperationAST(document)!;
  const defaults = Object.fromEntries(
    (operation.variableDefinitions ?? []).flatMap((v) =>
      v.defaultValue?.kind === "BooleanValue" ? [[v.variable.name.value, v.defaultValue.value]] : [],
    ),
  );
  const result = completionOf(schema, document, operation)
    .variant({ ...defaults, ...variables })
    .complete({ data: structuredClone(raw) });
  return { data: JSON.stringify(result.data), places: (result.errors ?? []).map((e) => e.path!.join(".")) };
}
