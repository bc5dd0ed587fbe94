import {
  type DocumentNode,
  execute,
  GraphQLError,
  type GraphQLScalarType,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
  isScalarType,
} from "graphql";
import { type Completion, compileCompletion } from "./completion/completion.ts";
import { splitIntrospection } from "./introspection.ts";
import type { Caller, Opened, Result, Variables } from "./request.ts";
import type { Router } from "./router.ts";
import { isStream, mapStream } from "./stream.ts";

/** One operation of a valid document, ready to run again and again. */
interface Compiled {
  readonly completion: Completion;
  /** What the subgraphs are asked; null when only the graph itself is. */
  readonly data: DocumentNode | null;
  /** What is asked about the graph's types; null when nothing is. */
  readonly types: DocumentNode | null;
  readonly operationName?: string;
  coerce(variables: Variables): { coerced: Variables } | { errors: readonly GraphQLError[] };
}

/** What runs on the graph: a valid document, one of its operations, its variables, and who asks. */
export interface GraphRequest {
  readonly document: DocumentNode;
  readonly operationName?: string | null;
  readonly variables?: Variables | null;
  readonly caller: Caller;
}

/** The whole graph: answers as one server over one schema would. What it compiles lives as long as the document. */
export class Graph {
  readonly schema: GraphQLSchema;
  readonly #router: Router;
  readonly #compiled = new WeakMap<DocumentNode, Map<string, Compiled>>();

  /** `scalars` read variables and literals as the subgraphs' own do, so that bad input is refused before it leaves. */
  constructor(router: Router, scalars: readonly GraphQLScalarType[] = []) {
    this.#router = router;
    this.schema = router.schema;
    for (const scalar of scalars) adopt(this.schema, scalar);
  }

  /** Compiles an operation ahead of its first request. Throws when the document has no such operation. */
  compile(document: DocumentNode, operationName?: string | null): Compiled {
    const operations = this.#compiled.get(document) ?? new Map<string, Compiled>();
    const known = operations.get(operationName ?? "");
    if (known) return known;
    const compiled = this.#compile(document, operationName);
    operations.set(operationName ?? "", compiled);
    this.#compiled.set(document, operations);
    return compiled;
  }

  #compile(document: DocumentNode, operationName: string | null | undefined): Compiled {
    const operation = getOperationAST(document, operationName);
    if (!operation) throw unknownOperation(operationName);
    const completion = compileCompletion(this.schema, document, operation);
    const marked = getOperationAST(completion.document, operationName)!;
    const definitions = operation.variableDefinitions ?? [];
    return {
      completion,
      ...splitIntrospection(completion.document, marked),
      operationName: operationName ?? undefined,
      coerce: (variables) =>
        definitions.length === 0
          ? { coerced: {} }
          : (getVariableValues(this.schema, definitions, variables) as { coerced: Variables }),
    };
  }

  /** Runs a query or mutation. */
  async run(request: GraphRequest): Promise<Result> {
    const variables = request.variables ?? {};
    const compiled = this.compile(request.document, request.operationName);
    const read = compiled.coerce(variables);
    if ("errors" in read) return badInput(read.errors);
    const [data, types] = await Promise.all([
      this.#runData(compiled, variables, request.caller),
      this.#runTypes(compiled, variables),
    ]);
    return compiled.completion.complete(join(data, types), read.coerced);
  }

  /** Opens a subscription. */
  async open(request: GraphRequest): Promise<Opened> {
    const variables = request.variables ?? {};
    const compiled = this.compile(request.document, request.operationName);
    const read = compiled.coerce(variables);
    if ("errors" in read) return badInput(read.errors);
    const { operationName } = compiled;
    const opened = await this.#router.open({
      document: compiled.data!,
      operationName,
      variables,
      caller: request.caller,
    });
    if (!isStream(opened)) return { errors: opened.errors };
    return mapStream(opened, (event) => compiled.completion.complete(event, read.coerced));
  }

  #runData({ data, operationName }: Compiled, variables: Variables, caller: Caller) {
    return data ? this.#router.run({ document: data, operationName, variables, caller }) : null;
  }

  #runTypes({ types, operationName }: Compiled, variables: Variables) {
    return types ? execute({ schema: this.schema, document: types, operationName, variableValues: variables }) : null;
  }
}

function unknownOperation(name: string | null | undefined): GraphQLError {
  const message = name
    ? `The document has no operation ${JSON.stringify(name)}.`
    : "The document has several operations: say which one.";
  return new GraphQLError(message, { extensions: { code: "OPERATION_RESOLUTION_FAILURE" } });
}

function badInput(errors: readonly GraphQLError[]): Result {
  return {
    errors: errors.map(
      (e) => new GraphQLError(e.message, { nodes: e.nodes, extensions: { ...e.extensions, code: "BAD_USER_INPUT" } }),
    ),
  };
}

type Part = Awaited<ReturnType<Router["run"]>> | null;

function join(data: Part, types: Part): NonNullable<Part> {
  if (!data || !types) return (data ?? types)!;
  return { data: { ...data.data, ...types.data }, errors: [...(data.errors ?? []), ...(types.errors ?? [])] };
}

function adopt(schema: GraphQLSchema, scalar: GraphQLScalarType): void {
  const type = schema.getType(scalar.name);
  if (!isScalarType(type)) return; // a scalar that no subgraph uses
  type.parseValue = scalar.parseValue;
  type.parseLiteral = scalar.parseLiteral;
}
