/** What a gateway sends with each request to a subgraph in another process. */
export const SUBGRAPH_WIRE = {
  /** The signed actor: `signActor` of the kernel. A header of queries and mutations, a connection parameter of subscriptions. */
  actor: "x-nodus-actor",
  requestId: "x-request-id",
  /** Queries and mutations by POST, subscriptions over graphql-ws on the same path. */
  path: "/graphql",
} as const;
