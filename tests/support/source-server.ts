import { createHash } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { type FetchOptions, type FetchPort, openFetch } from "../../infra/net/fetch-https.ts";
import { PrivateExceptions } from "../../infra/net/public-address.ts";
import { type Authority, testAuthority } from "./authority.ts";

export type Route = (request: IncomingMessage, response: ServerResponse) => void;

/** What reached a server, in order. */
export interface Seen {
  path: string;
  authorization: string | undefined;
}

/** An HTTPS server of this machine with routes by path (or by path and query, where such a one is there). */
export interface SourceServer {
  /** `https://localhost:port`. */
  origin: string;
  routes: Map<string, Route>;
  seen: Seen[];
  close(): Promise<void>;
}

/** Servers that stand for the internet, under one authority that only their `fetch` trusts. */
export interface Sources {
  authority: Authority;
  serve(hosts?: string[]): Promise<SourceServer>;
  fetch(over?: Partial<FetchOptions>): FetchPort;
  close(): Promise<void>;
}

/** Needs the `openssl` program (Debian package `openssl`). */
export async function sources(): Promise<Sources> {
  const authority = await testAuthority();
  const closers: (() => Promise<void>)[] = [];
  return {
    authority,
    serve: async (hosts = ["localhost"]) => {
      const { certPem: cert, keyPem: key } = await authority.issue(hosts);
      const routes = new Map<string, Route>();
      const seen: Seen[] = [];
      const server = createServer({ cert, key }, (request, response) => {
        const url = request.url!;
        seen.push({ path: url, authorization: request.headers.authorization });
        const route = routes.get(url) ?? routes.get(url.split("?")[0]!);
        if (route) route(request, response);
        else response.writeHead(404).end("not here");
      });
      const close = () => closed(server);
      closers.push(close);
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      return { origin: `https://localhost:${(server.address() as AddressInfo).port}`, routes, seen, close };
    },
    fetch: (over = {}) => {
      const fetch = openFetch({
        exceptions: new PrivateExceptions(["localhost"]),
        ca: authority.caPem,
        idleMs: 2_000,
        ...over,
      });
      closers.push(() => fetch.close());
      return fetch;
    },
    close: async () => {
      for (const close of closers.splice(0).reverse()) await close();
    },
  };
}

async function closed(server: Server): Promise<void> {
  if (!server.listening) return;
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}

export const answer =
  (body: string | Uint8Array, headers: Record<string, string> = {}, status = 200): Route =>
  (_, response) =>
    response.writeHead(status, headers).end(body);

export const redirect = (location: string, status = 302): Route => answer("", { location }, status);

export const GITHUB_COMMIT = "a".repeat(40);
export const HUB_COMMIT = "b".repeat(40);

/** Makes a server answer as GitHub's API does: a ref's commit, and its archive after a redirect to another origin. */
export function playGithub(api: SourceServer, codeload: SourceServer, repo: string, tarGz: Uint8Array): void {
  api.routes.set(`/repos/${repo}/commits/main`, answer(GITHUB_COMMIT));
  api.routes.set(`/repos/${repo}/tarball/${GITHUB_COMMIT}`, redirect(`${codeload.origin}/${repo}/signed?key=1`));
  codeload.routes.set(`/${repo}/signed`, answer(tarGz, { "content-type": "application/x-gzip" }));
}

/** Makes a server answer as Hugging Face does for a dataset, its listing in pages, large files on another origin. */
export function playHub(hub: SourceServer, cdn: SourceServer, repo: string, files: Record<string, string>): void {
  const tree = `/api/datasets/${repo}/tree/${HUB_COMMIT}`;
  hub.routes.set(`/api/datasets/${repo}/revision/main`, answer(JSON.stringify({ sha: HUB_COMMIT })));
  const rows = [{ type: "directory", oid: "0", size: 0, path: "data" }, ...Object.entries(files).map(listed)];
  const half = Math.ceil(rows.length / 2);
  const next = `${hub.origin}${tree}?recursive=true&cursor=2`;
  hub.routes.set(
    `${tree}?recursive=true`,
    answer(JSON.stringify(rows.slice(0, half)), { link: `<${next}>; rel="next"` }),
  );
  hub.routes.set(`${tree}?recursive=true&cursor=2`, answer(JSON.stringify(rows.slice(half))));
  for (const [path, content] of Object.entries(files)) {
    const place = `/datasets/${repo}/resolve/${HUB_COMMIT}/${path}`;
    hub.routes.set(place, isLarge(content) ? redirect(`${cdn.origin}/cdn/${path}?signature=1`) : answer(content));
    cdn.routes.set(`/cdn/${path}`, answer(content));
  }
}

const isLarge = (content: string) => content.length > 100;

function listed([path, content]: [string, string]): object {
  const size = Buffer.byteLength(content);
  if (isLarge(content))
    return {
      type: "file",
      path,
      size,
      oid: "c".repeat(40),
      lfs: { oid: sha("sha256", content), size, pointerSize: 134 },
    };
  return { type: "file", path, size, oid: sha("sha1", `blob ${size}\0${content}`) };
}

function sha(algorithm: string, content: string): string {
  return createHash(algorithm).update(content).digest("hex");
}
