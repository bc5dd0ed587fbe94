import { runInNewContext } from "node:vm";
import { type ClientOptions, createClient } from "graphql-ws";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type Served, served } from "../../tests/federation/served.ts";
import { shop } from "../../tests/federation/shop.ts";

type Fetcher = (params: { query: string }, options: { headers: Record<string, string> }) => Promise<unknown>;

let server: Served;
beforeAll(async () => {
  server = await served(shop(), {}, { graphiql: true });
});
afterAll(() => server.close());

/** What would make a browser load something: an attribute, an import, a worker, a style's url or a request. */
const LOADS = [
  /(?:src|href|action)\s*=\s*["']?(?:https?:)?\/\/[^"'\s>]+/gi,
  /@import\s+(?:url\()?["']?(?:https?:)?\/\/[^"')\s]+/gi,
  /url\(\s*["']?(?:https?:)?\/\/[^)]+/gi,
  /(?:importScripts|import|fetch|new Worker|new WebSocket|new EventSource|new URL)\(\s*["'`](?:https?:|wss?:)?\/\/[^"'`]+/g,
  /from\s*["'](?:https?:)?\/\/[^"']+/g,
];
const CDNS = /unpkg\.com|jsdelivr\.net|cdnjs\.|googleapis\.com|gstatic\.com|esm\.sh|skypack\.dev|cdn\.apollographql/i;

const loadsIn = (text: string) => LOADS.flatMap((pattern) => text.match(pattern) ?? []);

/** The page and every file that it leads to, by path. */
async function everything(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const visit = async (path: string): Promise<void> => {
    if (found.has(path)) return;
    const response = await fetch(new URL(path, server.url));
    expect([path, response.status]).toEqual([path, 200]);
    const text = await response.text();
    found.set(path, text);
    const references = [
      ...text.matchAll(/(?:<script[^>]+src|<link[^>]+href)="(\/[^"]+)"/g),
      ...text.matchAll(/from ["'](\.\/[\w./-]+\.js)["'];/g),
    ];
    for (const [, reference] of references) await visit(new URL(reference!, new URL(path, server.url)).pathname);
  };
  await visit("/graphiql");
  for (const worker of ["editorWorkerService", "json", "graphql"]) await visit(`/graphiql/assets/${worker}.worker.js`);
  return found;
}

describe("GraphiQL", () => {
  it("comes with everything it loads: no file of it names another host", async () => {
    const files = await everything();
    expect([...files.keys()]).toEqual(
      expect.arrayContaining([
        "/graphiql/assets/graphiql.js",
        "/graphiql/assets/graphiql.css",
        "/graphiql/assets/start.js",
        "/graphiql/assets/graphql-ws/client.js",
      ]),
    );
    for (const [path, text] of files) {
      expect([path, CDNS.exec(text)?.[0]]).toEqual([path, undefined]);
      expect([path, loadsIn(text).filter((load) => !isHarmless(load))]).toEqual([path, []]);
    }
  });

  it("is forbidden by policy to reach any other host", async () => {
    const policy = (await fetch(`${server.url}/graphiql`)).headers.get("content-security-policy")!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("connect-src 'self'");
    expect(policy).not.toMatch(/https?:|wss?:|\*/);
  });

  it("sends the headers of its editor with queries, and as the connection parameters of a subscription's socket", async () => {
    const start = (await everything()).get("/graphiql/assets/start.js")!;
    let props: { fetcher: Fetcher; isHeadersEditorEnabled: boolean } | undefined;
    runInNewContext(start.replace(/^import .*$/m, ""), {
      URL,
      fetch,
      location: { href: `${server.url}/graphiql` },
      document: { getElementById: () => null },
      createClient: (options: ClientOptions) => createClient({ ...options, webSocketImpl: WebSocket }),
      YogaGraphiQL: {
        renderYogaGraphiQL: (_root: null, given: typeof props) => {
          props = given;
        },
      },
    });
    const { fetcher, isHeadersEditorEnabled } = props!;
    expect(isHeadersEditorEnabled).toBe(true);
    const options = { headers: { Authorization: "Bearer nk_good" } };
    expect(await fetcher({ query: "{ total }" }, options)).toEqual({ data: { total: 1 } });
    const items: unknown[] = [];
    for await (const item of (await fetcher(
      { query: "subscription { count(to: 2) }" },
      options,
    )) as AsyncIterable<unknown>)
      items.push(item);
    expect(items).toEqual([{ data: { count: 1 } }, { data: { count: 2 } }]);
  });

  it("is where a browser at the endpoint is led", async () => {
    const response = await fetch(`${server.url}/graphql`, { headers: { accept: "text/html" }, redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([302, "/graphiql"]);
  });

  it("serves no other file", async () => {
    for (const path of ["../page.ts", "graphql-ws/server.js", "%2e%2e/%2e%2e/package.json", ""])
      expect((await fetch(`${server.url}/graphiql/assets/${path}`)).status).toBe(404);
  });

  it("is not there unless asked for", async () => {
    const bare = await served(shop());
    try {
      expect((await fetch(`${bare.url}/graphiql`)).status).toBe(404);
    } finally {
      await bare.close();
    }
  });
});

/** Links that a person may click, and a made-up host that only completes a relative address. */
function isHarmless(load: string): boolean {
  return /^href/i.test(load) || /dummyhostname\.com/.test(load);
}
