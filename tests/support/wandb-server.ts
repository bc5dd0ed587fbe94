import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { WandbOrigin } from "../../subgraphs/data/connection/wandb-viewer.ts";
import { type Authority, testAuthority } from "./authority.ts";

/** A local HTTPS server that speaks the part of the Weights & Biases API that connections are verified with. */
export interface WandbServer extends WandbOrigin {
  readonly ca: string;
  readonly authority: Authority;
  /** How the next requests are answered: as the API would, with this status and text, as the API but later, or never. */
  behave(how: "as the API" | { status: number; text: string } | { heldUntil: Promise<void> } | "silent"): void;
  /** Requests that came. */
  readonly asked: { path: string; body: string }[];
  close(): Promise<void>;
}

/** Starts one that knows this key, under `https://localhost`. */
export async function startWandbServer(apiKey: string): Promise<WandbServer> {
  const authority = await testAuthority();
  const { certPem, keyPem } = await authority.issue(["localhost"]);
  let how: Parameters<WandbServer["behave"]>[0] = "as the API";
  const asked: WandbServer["asked"] = [];
  const expected = `Basic ${Buffer.from(`api:${apiKey}`).toString("base64")}`;
  const server: Server = createServer({ cert: certPem, key: keyPem }, async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    asked.push({ path: `${request.method} ${request.url}`, body });
    if (how === "silent") return;
    if (typeof how === "object" && "heldUntil" in how) await how.heldUntil;
    else if (how !== "as the API") return void response.writeHead(how.status).end(how.text);
    const viewer = request.headers.authorization === expected ? { id: "VXNlcjox", username: "one" } : null;
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ data: { viewer } }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `https://localhost:${(server.address() as AddressInfo).port}`,
    ca: authority.caPem,
    authority,
    asked,
    behave: (next) => {
      how = next;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
