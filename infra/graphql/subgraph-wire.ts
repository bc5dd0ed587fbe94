/** What a gateway sends with each request to a subgraph in another process. */
export const SUBGRAPH_WIRE = {
  /** The signed actor: `signActor` of the kernel. A header of queries and mutations, a connection parameter of subscriptions. */
  actor: "x-nodus-actor",
  requestId: "x-request-id",
} as const;

/** Where a process serves a subgraph: queries and mutations by POST, subscriptions over graphql-ws. It may serve several. */
export function subgraphPath(name: string): string {
  return `/subgraphs/${name}/graphql`;
}

/** Address of a subgraph below the URL that a gateway was given for it, which may have a path of its own. */
export function subgraphUrl(base: string, name: string): URL {
  return new URL(`${base.replace(/\/+$/, "")}${subgraphPath(name)}`);
}
