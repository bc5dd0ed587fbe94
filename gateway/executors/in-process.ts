import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLSchema,
} from "graphql";
import { type CompiledQuery, compileQuery, isCompiledQuery } from "graphql-jit";
import type { Caller, SubgraphExecutor, SubgraphRequest } from "../request.ts";
import { isStream, mapStream } from "../stream.ts";

/** Makes a subgraph's context: one for each request, and for each event of a subscription. */
export type ContextFor = (caller: Caller) => object;

/** A subgraph that runs in this process: compiled once per document, without HTTP and without serialising. */
export function inProcess(name: string, schema: GraphQLSchema, contextFor: ContextFor): SubgraphExecutor {
  const compiled = new WeakMap<DocumentNode, CompiledQuery | ExecutionResult>();
  return {
    name,
    execute(request) {
      if (request.operationType === "subscription") return subscribe(schema, request, contextFor);
      let query = compiled.get(request.document);
      if (!query) {
        query = compileQuery(schema, request.document, request.operationName) as CompiledQuery | ExecutionResult;
        compiled.set(request.document, query);
      }
      if (!isCompiledQuery(query)) return asInputError(query);
      return settled(query.query(undefined, contextFor(request), request.variables));
    },
  };
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

/** A result without data never ran: what the errors complain about came with the request. */
function asInputError(result: ExecutionResult): ExecutionResult {
  if (result.data !== undefined || !result.errors) return result;
  return { errors: result.errors.map((error) => (error.path || error.extensions.code ? error : badInput(error))) };
}

function badInput(error: GraphQLError): GraphQLError {
  return new GraphQLError(error.message, {
    nodes: error.nodes,
    extensions: { ...error.extensions, code: "BAD_USER_INPUT" },
  });
}
