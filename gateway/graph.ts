import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLScalarType,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
  isScalarType,
} from "graphql";
import { type Completion, completionOf } from "./completion/completion.ts";
import type { Caller, Opened, Result, Variables } from "./request.ts";
import type { Router } from "./router.ts";
import { isStream, mapStream } from "./stream.ts";
import { variableErrors } from "./variable-errors.ts";

/** One operation of a valid document, ready to run again and again. */
interface Compiled {
  readonly completion: Completion;
  readonly operationName?: string;
  /** Null when the variables are not what their types say. */
  coerce(variables: Variables): Variables | null;
  /** What is wrong with variables that could not be coerced. */
  complain(variables: Variables): { errors: readonly GraphQLError[] };
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
  async prepare(document: DocumentNode, operationName?: string | null): Promise<void> {
    const { completion, operationName: name } = this.#compiledFor(document, operationName);
    const { data } = completion.variant({});
    if (data) await this.#router.plan({ document: data, operationName: name });
  }

  #compiledFor(document: DocumentNode, operationName?: string | null): Compiled {
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
    const definitions = operation.variableDefinitions ?? [];
    return {
      completion: completionOf(this.schema, document, operation),
      operationName: operation.name?.value,
      coerce: (variables) =>
        definitions.length === 0 ? {} : (getVariableValues(this.schema, definitions, variables).coerced ?? null),
      complain: (variables) => ({ errors: variableErrors(this.schema, definitions, variables) }),
    };
  }

  /** Runs a query or mutation. */
  async run(request: GraphRequest): Promise<Result> {
    const variables = request.variables ?? {};
    const compiled = this.#compiledFor(request.document, request.operationName);
    const coerced = compiled.coerce(variables);
    if (!coerced) return compiled.complain(variables);
    const { operationName, completion } = compiled;
    const variant = completion.variant(coerced);
    const data = variant.data
      ? this.#router.run({ document: variant.data, operationName, variables, caller: request.caller })
      : null;
    const types = variant.types
      ? execute({ schema: this.schema, document: variant.types, operationName, variableValues: variables })
      : null;
    return variant.complete(join(await data, await types));
  }

  /** Opens a subscription. */
  async open(request: GraphRequest): Promise<Opened> {
    const variables = request.variables ?? {};
    const compiled = this.#compiledFor(request.document, request.operationName);
    const coerced = compiled.coerce(variables);
    if (!coerced) return compiled.complain(variables);
    const { operationName, completion } = compiled;
    const variant = completion.variant(coerced);
    if (!variant.data)
      return {
        errors: [new GraphQLError("The subscription selects nothing.", { extensions: { code: "BAD_USER_INPUT" } })],
      };
    const opened = await this.#router.open({
      document: variant.data,
      operationName,
      variables,
      caller: request.caller,
    });
    return isStream(opened)
      ? mapStream(opened[Symbol.asyncIterator](), (event) => variant.complete(event))
      : { errors: opened.errors };
  }
}

function unknownOperation(name: string | null | undefined): GraphQLError {
  const message = name
    ? `The document has no operation ${JSON.stringify(name)}.`
    : "The document has several operations: say which one.";
  return new GraphQLError(message, { extensions: { code: "OPERATION_RESOLUTION_FAILURE" } });
}

function join(data: ExecutionResult | null, types: ExecutionResult | null): ExecutionResult {
  if (!data || !types) return data ?? types ?? {};
  return { data: { ...data.data, ...types.data }, errors: [...(data.errors ?? []), ...(types.errors ?? [])] };
}

function adopt(schema: GraphQLSchema, scalar: GraphQLScalarType): void {
  const type = schema.getType(scalar.name);
  if (!isScalarType(type)) return; // a scalar that no subgraph uses
  type.parseValue = scalar.parseValue;
  type.parseLiteral = scalar.parseLiteral;
}
