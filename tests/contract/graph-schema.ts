import { filterInternalFieldsAndTypes } from "@graphql-tools/federation";
import { buildSchema, type GraphQLSchema } from "graphql";
import { composeSupergraph } from "../../roles/compose-supergraph.ts";
import { buildSubgraph, SUBGRAPH_NAMES } from "../../roles/graph.ts";

/** The graph as callers see it, composed from the code. */
export function graphSchema(): GraphQLSchema {
  const sdl = composeSupergraph(SUBGRAPH_NAMES.map(buildSubgraph));
  return filterInternalFieldsAndTypes(buildSchema(sdl, { assumeValid: true, assumeValidSDL: true }));
}
