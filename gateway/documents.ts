import { createHash } from "node:crypto";
import {
  type ASTVisitor,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  parse,
  specifiedRules,
  type ValidationContext,
  validate,
  visit,
} from "graphql";
import { LIMITS } from "../infra/kernel/limits.ts";
import { BoundedMap } from "./bounded-map.ts";
import { type Measure, measure } from "./measure.ts";
import { type DocumentLimits, refuseBeyond } from "./plugins/limits.ts";
import { beyond, GATEWAY, requestRefusal } from "./refusals.ts";

/** A document as it was first read. */
export interface KnownDocument {
  readonly text: string;
  /** Null when the text is no GraphQL. */
  readonly document: DocumentNode | null;
  /** Why it may not run; empty when it may. */
  readonly problems: readonly GraphQLError[];
}

export interface DocumentsOptions {
  schema: GraphQLSchema;
  introspection: boolean;
  limits: DocumentLimits;
  /** Most documents that are kept. */
  max?: number;
}

/** Reads documents: parsed, measured and validated once, in that order, as measuring is cheap and validating is not. */
export class Documents {
  readonly #known: BoundedMap<string, KnownDocument>;
  readonly #measures = new WeakMap<OperationDefinitionNode, Measure>();
  readonly #options: DocumentsOptions;

  constructor(options: DocumentsOptions) {
    this.#options = options;
    this.#known = new BoundedMap(options.max ?? LIMITS.graphqlDocuments);
  }

  /** The document of a text. `hash` is the text's `documentHash`, where the caller has it. */
  read(text: string, hash: string = documentHash(text)): KnownDocument {
    const known = this.#known.get(hash) ?? this.#read(text);
    this.#known.set(hash, known);
    return known;
  }

  /** A document that was read before and is still kept. */
  byHash(hash: string): KnownDocument | undefined {
    return this.#known.get(hash);
  }

  /** The measure of an operation of a document that was read here. */
  measureOf(operation: OperationDefinitionNode): Measure | undefined {
    return this.#measures.get(operation);
  }

  #read(text: string): KnownDocument {
    const { schema, limits } = this.#options;
    let document: DocumentNode;
    try {
      document = withoutDescriptions(parse(text, { maxTokens: limits.tokens }));
    } catch (error) {
      return { text, document: null, problems: [asSyntaxProblem(error, limits.tokens)] };
    }
    const problems: GraphQLError[] = [];
    for (const definition of document.definitions) {
      if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
      const measured = measure(schema, document, definition);
      this.#measures.set(definition, measured);
      problems.push(...refuseBeyond(limits, measured).map(requestRefusal));
    }
    if (problems.length === 0) problems.push(...this.#validate(document));
    return { text, document, problems };
  }

  #validate(document: DocumentNode): GraphQLError[] {
    const { schema, introspection } = this.#options;
    const rules = [
      ...specifiedRules,
      NoReservedAliases,
      NoEndlessIntegers,
      ...(introspection ? [] : [NoSchemaIntrospectionCustomRule]),
    ];
    return validate(schema, document, rules, { maxErrors: 20 }).map((error) =>
      asBadRequest(error, "GRAPHQL_VALIDATION_FAILED"),
    );
  }
}

/** Names that begin with two underscores belong to GraphQL itself, and the router relies on that. */
function NoReservedAliases(context: ValidationContext): ASTVisitor {
  return {
    Field(node) {
      if (!node.alias?.value.startsWith("__")) return;
      const message = `The alias "${node.alias.value}" begins with two underscores, which is reserved.`;
      context.reportError(new GraphQLError(message, { nodes: node }));
    },
  };
}

const MOST_DIGITS = 19;
const LOWEST_INTEGER = -(2n ** 63n);
const HIGHEST_INTEGER = 2n ** 63n - 1n;

/** The planner reads a document's integers with 64 bits. */
function NoEndlessIntegers(context: ValidationContext): ASTVisitor {
  return {
    IntValue(node) {
      const isShort = node.value.length <= MOST_DIGITS + 1; // with its sign
      const value = isShort ? BigInt(node.value) : null;
      if (value !== null && value >= LOWEST_INTEGER && value <= HIGHEST_INTEGER) return;
      const message = "A whole number in a document has at most 64 bits; send a larger one in a variable.";
      context.reportError(new GraphQLError(message, { nodes: node }));
    },
  };
}

/** Descriptions of operations, fragments and variables are for people; the planner does not know them. */
function withoutDescriptions(document: DocumentNode): DocumentNode {
  const strip = { leave: <N extends { description?: unknown }>(node: N) => ({ ...node, description: undefined }) };
  const isDescribed = document.definitions.some(
    (definition) =>
      (definition.kind === Kind.OPERATION_DEFINITION || definition.kind === Kind.FRAGMENT_DEFINITION) &&
      (definition.description ?? definition.variableDefinitions?.some(({ description }) => description)),
  );
  if (!isDescribed) return document;
  return visit(document, { OperationDefinition: strip, FragmentDefinition: strip, VariableDefinition: strip });
}

/** The name that persisted operations have: sha256 of the text, in hex. */
export function documentHash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function asSyntaxProblem(error: unknown, maxTokens: number): GraphQLError {
  if (!(error instanceof GraphQLError)) throw error;
  if (/contains more tha[nt] \d+ tokens/.test(error.message))
    return requestRefusal(beyond(GATEWAY.query_too_long, maxTokens, `more than ${maxTokens}`));
  return asBadRequest(error, "GRAPHQL_PARSE_FAILED");
}

function asBadRequest(error: GraphQLError, code: string): GraphQLError {
  const { nodes, source, positions } = error;
  return new GraphQLError(error.message, {
    nodes,
    source,
    positions,
    extensions: { ...error.extensions, code, http: { status: 400, headers: new Map() } as never },
  });
}
