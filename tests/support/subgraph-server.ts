import type { FastifyInstance } from "fastify";
import { createProcessServer } from "../../gateway/process-server.ts";
import { type SubgraphServerOptions, serveSubgraph } from "../../gateway/subgraph-server.ts";

/** One subgraph in a server of its own, not listening yet. */
export async function createSubgraphServer(options: SubgraphServerOptions): Promise<FastifyInstance> {
  const app = await createProcessServer({ log: options.log });
  await serveSubgraph(app, options);
  return app;
}
