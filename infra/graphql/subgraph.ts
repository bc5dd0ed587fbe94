import { buildSubgraphSchema } from "@apollo/subgraph";
import { MapperKind, mapSchema, printSchemaWithDirectives } from "@graphql-tools/utils";
import { createPubSub } from "@graphql-yoga/subscription";
import {
  type GraphQLFieldConfig,
  type GraphQLSchema,
  getNullableType,
  isAbstractType,
  lexicographicSortSchema,
  parse,
} from "graphql";
import { buildSchemaSync, createResolversMap, getMetadataStorage, type NonEmptyArray } from "type-graphql";
import type { GraphContext } from "./context.ts";
import { translateRefusals } from "./errors.ts";

const LINK = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.6", import: ["@key", "@shareable", "@external", "@requires", "@provides"])\n`;

/** A domain's part of the graph. */
export interface Subgraph {
  readonly name: string;
  readonly schema: GraphQLSchema;
  /** Federation SDL, sorted: the checked-in file changes only where the graph does. */
  readonly sdl: string;
}

// biome-ignore lint/complexity/noBannedTypes: type-graphql names classes as Function
type Class = Function;
/** Answers an entity reference, such as `{id}`; null when there is none that the caller may see. */
export type Reference = (reference: { id: string }, context: GraphContext) => unknown;

interface ObjectWithName {
  target: Class;
  name: string;
}

/** Builds a subgraph from its resolver classes and the entities that it answers references for. */
export function subgraph(
  name: string,
  resolvers: readonly Class[],
  references: readonly [Class, Reference][],
): Subgraph {
  const base = buildSchemaSync({
    resolvers: resolvers as unknown as NonEmptyArray<Class>,
    orphanedTypes: references.map(([type]) => type),
    validate: false,
    globalMiddlewares: [translateRefusals as never],
    pubSub: createPubSub() as never, // type-graphql insists on one; every subscription here has its own `subscribe`
  });
  const sdl = LINK + printSchemaWithDirectives(lexicographicSortSchema(rootsNullable(base)));
  const objects = getMetadataStorage().objectTypes as unknown as ObjectWithName[];
  const names = new Map(objects.map((o) => [o.target, o.name]));
  const map = createResolversMap(base) as Record<string, Record<string, unknown>>;
  for (const [type, resolve] of references) {
    const key = names.get(type);
    if (!key) throw new Error(`${type.name} is no object type`);
    map[key] = { ...map[key], __resolveReference: translated(resolve) };
  }
  for (const type of Object.values(base.getTypeMap())) {
    // Synchronous and never throwing: a compiled executor dies of anything else.
    if (isAbstractType(type)) map[type.name] = { ...map[type.name], __resolveType: typeOf };
  }
  function typeOf(value: { __typename?: string; constructor?: Class } | null): string | undefined {
    return value?.__typename ?? names.get(value?.constructor as Class);
  }
  return { name, sdl, schema: buildSubgraphSchema([{ typeDefs: parse(sdl), resolvers: map as never }]) };
}

/**
 * An operation may ask several subgraphs: were a root field of one of them non-null, its failure would take the others'
 * data with it.
 */
function rootsNullable(schema: GraphQLSchema): GraphQLSchema {
  const nullable = <T extends GraphQLFieldConfig<unknown, unknown>>(field: T): T => ({
    ...field,
    type: getNullableType(field.type),
  });
  return mapSchema(schema, {
    [MapperKind.QUERY_ROOT_FIELD]: nullable,
    [MapperKind.MUTATION_ROOT_FIELD]: nullable,
  });
}

/** Middleware does not reach reference resolvers. */
function translated(resolve: Reference): Reference {
  return (reference, context) => translateRefusals(null, async () => resolve(reference, context));
}
