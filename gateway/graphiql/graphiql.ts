import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";
import { ASSETS, CONTENT_SECURITY_POLICY, PAGE, START_SCRIPT, WORKERS_SCRIPT } from "./page.ts";

interface Asset {
  type: "text/javascript" | "text/css";
  body: string | Buffer;
}

/** Serves GraphiQL at `/graphiql`, with all that it loads: the network of whoever opens it is not asked for anything else. */
export async function serveGraphiql(app: FastifyInstance): Promise<void> {
  let assets: Promise<Map<string, Asset>> | null = null; // several megabytes: read when somebody opens the page
  app.get("/graphiql", async (_request, reply) =>
    reply.type("text/html; charset=utf-8").header("content-security-policy", CONTENT_SECURITY_POLICY).send(PAGE),
  );
  app.get<{ Params: { "*": string } }>(`${ASSETS}/*`, async (request, reply) => {
    assets ??= readAssets();
    const asset = (await assets).get(request.params["*"]);
    if (!asset) return reply.callNotFound();
    return reply.type(`${asset.type}; charset=utf-8`).header("cache-control", "max-age=3600").send(asset.body);
  });
}

async function readAssets(): Promise<Map<string, Asset>> {
  const bundle = await import("@graphql-yoga/render-graphiql/graphiql");
  const script = (body: string | Buffer): Asset => ({ type: "text/javascript", body });
  return new Map<string, Asset>([
    ["graphiql.css", { type: "text/css", body: bundle.css }],
    ["graphiql.js", script(bundle.js)],
    ["workers.js", script(WORKERS_SCRIPT)],
    ["editorWorkerService.worker.js", script(bundle.editorWorkerService)],
    ["json.worker.js", script(bundle.jsonWorker)],
    ["graphql.worker.js", script(bundle.graphqlWorker)],
    ["start.js", script(START_SCRIPT)],
    ...(await readSocketClient(script)),
  ]);
}

/** The browser client of graphql-ws: one module and those that it imports. */
async function readSocketClient(script: (body: Buffer) => Asset): Promise<[string, Asset][]> {
  const folder = dirname(fileURLToPath(import.meta.resolve("graphql-ws")));
  const found = new Map<string, Asset>();
  const read = async (file: string): Promise<void> => {
    if (found.has(`graphql-ws/${file}`)) return;
    const body = await readFile(join(folder, file));
    found.set(`graphql-ws/${file}`, script(body));
    for (const [, imported] of body.toString().matchAll(/from '\.\/([\w.-]+\.js)'/g)) await read(basename(imported!));
  };
  await read("client.js");
  return [...found];
}
