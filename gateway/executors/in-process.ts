import {
  BREAK,
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLInputObjectType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isScalarType,
  isSpecifiedScalarType,
  Kind,
  type NamedTypeNode,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
} from "graphql";
import { type CompiledQuery, compileQuery, isCompiledQuery } from "graphql-jit";
import type { Caller, SubgraphExecutor, SubgraphRequest } from "../request.ts";
import { isStream, mapStream } from "../stream.ts";

/** Makes a subgraph's context: one for each request, and for each event of a subscription. */
export type ContextFor = (caller: Caller) => object;

/** A subgraph that runs in this process: compiled once per document, without HTTP and without serialising. */
export function inProcess(name: string, schema: GraphQLSchema, contextFor: ContextFor): SubgraphExecutor {
  const compiled = new WeakMap<DocumentNode, Compiled>();
  return {
    name,
    execute(request) {
      if (request.operationType === "subscription") return subscribe(schema, request, contextFor);
      let query = compiled.get(request.document);
      if (!query) {
        query = compile(schema, request);
        compiled.set(request.document, query);
      }
      if (query === "interpreted") return settled(interpret(schema, request, contextFor));
      if (!isCompiledQuery(query)) return asInputError(query);
      return settled(query.query(undefined, contextFor(request), request.variables));
    },
  };
}

/** A document made ready, what is wrong with it, or that it is not compiled. */
type Compiled = CompiledQuery | ExecutionResult | "interpreted";

function compile(schema: GraphQLSchema, { document, operationName }: SubgraphRequest): Compiled {
  if (hasOwnScalarLiterals(schema, document) || hasDefaultsWithin(schema, document)) return "interpreted";
  return compileQuery(schema, document, operationName) as CompiledQuery | ExecutionResult;
}

/** graphql-jit passes literals through JSON, which loses what a scalar of ours makes of them, such as an amount or a date. */
function hasOwnScalarLiterals(schema: GraphQLSchema, document: DocumentNode): boolean {
  const types = new TypeInfo(schema);
  let found = false;
  visit(
    document,
    visitWithTypeInfo(types, {
      enter(node) {
        if (!LITERALS.has(node.kind)) return undefined;
        const type = getNamedType(types.getInputType());
        found = isScalarType(type) && !isSpecifiedScalarType(type);
        return found ? BREAK : undefined;
      },
    }),
  );
  return found;
}

/** graphql-jit knows the defaults of arguments, and not those of the fields of an input that comes in a variable. */
function hasDefaultsWithin(schema: GraphQLSchema, document: DocumentNode): boolean {
  const seen = new Set<GraphQLInputObjectType>();
  const declares = (type: unknown): boolean => {
    if (!isInputObjectType(type) || seen.has(type)) return false;
    seen.add(type);
    return Object.values(type.getFields()).some(
      (field) => field.defaultValue !== undefined || declares(getNamedType(field.type)),
    );
  };
  return document.definitions.some(
    (definition) =>
      definition.kind === Kind.OPERATION_DEFINITION &&
      definition.variableDefinitions?.some(({ type }) =>
        declares(getNamedType(typeFromAST(schema, type as NamedTypeNode))),
      ),
  );
}

const LITERALS = new Set<string>([Kind.INT, Kind.FLOAT, Kind.STRING, Kind.BOOLEAN, Kind.ENUM, Kind.LIST, Kind.OBJECT]);

function interpret(schema: GraphQLSchema, request: SubgraphRequest, contextFor: ContextFor) {
  const { document, operationName, variables: variableValues } = request;
  return execute({ schema, document, operationName, variableValues, contextValue: contextFor(request) }) as
    | ExecutionResult
    | Promise<ExecutionResult>;
}

/** Not compiled: graphql-jit ends a subscription with literal arguments at once. */
async function subscribe(schema: GraphQLSchema, request: SubgraphRequest, contextFor: ContextFor) {
  const { document, operationName, variables: variableValues } = request;
  const source = await createSourceEventStream({
    schema,
    document,
    operationName,
    variableValues,
    contextValue: contextFor(request),
  });
  if (!isStream(source)) return asInputError(source);
  return mapStream(source[Symbol.asyncIterator](), (rootValue) =>
    execute({ schema, document, operationName, variableValues, rootValue, contextValue: contextFor(request) }),
  );
}

function settled(result: ExecutionResult | Promise<ExecutionResult>): ExecutionResult | Promise<ExecutionResult> {
  return result instanceof Promise ? result.then(asInputError) : asInputError(result);
}

/** A result without data never ran: what the errors complain about came with the request. Compiled ones lack extensions. */
function asInputError(result: ExecutionResult): ExecutionResult {
  if (result.data !== undefined || !result.errors) return result;
  return { errors: result.errors.map((error) => (error.path || error.extensions?.code ? error : badInput(error))) };
}

function badInput(error: GraphQLError): GraphQLError {
  return new GraphQLError(error.message, {
    nodes: error.nodes,
    extensions: { ...error.extensions, code: "BAD_USER_INPUT" },
  });
}
