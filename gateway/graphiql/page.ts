/** Where the page's files are served. */
export const ASSETS = "/graphiql/assets";

/** The page. Everything that it loads comes from this server. */
export const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width" />
    <title>Nodus GraphiQL</title>
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="${ASSETS}/graphiql.css" />
    <style>html, body, #root { height: 100%; margin: 0; }</style>
  </head>
  <body class="no-focus-outline">
    <noscript>GraphiQL needs JavaScript.</noscript>
    <div id="root"></div>
    <script src="${ASSETS}/workers.js"></script>
    <script src="${ASSETS}/graphiql.js"></script>
    <script type="module" src="${ASSETS}/start.js"></script>
  </body>
</html>
`;

/** Nothing may be loaded from elsewhere, whatever a script tries. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Tells the editor where its workers are. */
export const WORKERS_SCRIPT = `self.MonacoEnvironment = {
  globalAPI: false,
  getWorkerUrl: (_module, label) => "${ASSETS}/" + label + ".worker.js",
};
`;

/** Starts the page: queries by POST, subscriptions over graphql-ws with the same headers as connection parameters. */
export const START_SCRIPT = `import { createClient } from "./graphql-ws/client.js";

const endpoint = new URL("/graphql", location.href);
const socketUrl = endpoint.href.replace(/^http/, "ws");

async function post(params, headers) {
  const response = await fetch(endpoint, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(params),
  });
  return response.json();
}

/** One socket per subscription: it carries the headers of its own tab and goes with it. */
function subscribe(params, headers) {
  const client = createClient({ url: socketUrl, connectionParams: headers, retryAttempts: 0 });
  const results = client.iterate(params);
  const close = async () => {
    const ended = await results.return();
    await client.dispose();
    return ended;
  };
  return { [Symbol.asyncIterator]() { return this; }, next: () => results.next(), return: close, throw: (error) => results.throw(error) };
}

/** The server says which operations need a stream: the page need not read the document. */
async function fetcher(params, options) {
  const headers = options?.headers ?? {};
  const answer = await post(params, headers);
  return answer.errors?.[0]?.extensions?.code === "subscription_needs_stream" ? subscribe(params, headers) : answer;
}

YogaGraphiQL.renderYogaGraphiQL(document.getElementById("root"), {
  fetcher,
  title: "Nodus",
  headers: JSON.stringify({ Authorization: "Bearer nk_" }, null, 2),
  defaultEditorToolsVisibility: "headers",
  isHeadersEditorEnabled: true,
  shouldPersistHeaders: true,
  defaultQuery: "# Put your API key into Headers below, then run this.\\n{\\n  __typename\\n}\\n",
});
`;
