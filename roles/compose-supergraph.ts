import { composeServices } from "@theguild/federation-composition";
import { parse } from "graphql";
import type { Subgraph } from "../infra/graphql/subgraph.ts";

/** Composes the supergraph of all parts; throws with what clashes. */
export function composeSupergraph(subgraphs: readonly Pick<Subgraph, "name" | "sdl">[]): string {
  const composed = composeServices(
    subgraphs.map(({ name, sdl }) => ({ name, url: `nodus://${name}`, typeDefs: parse(sdl) })),
  );
  if (!composed.supergraphSdl) throw new Error((composed.errors ?? []).map((e) => e.message).join("\n"));
  return composed.supergraphSdl;
}
