import { afterEach, expect, test } from "vitest";
import { tarOf } from "../support/archive-samples.ts";
import { ADMIN_KEY, sharedPlatform } from "../support/platform.ts";
import { rawRequest, rawStatus } from "../support/raw-http.ts";
import { ends, script, submit } from "../support/workloads.ts";

const platform = sharedPlatform();
const authorization = `Bearer ${ADMIN_KEY}`;
const TEN_MEGABYTES = 10 * 1024 * 1024;

afterEach(async () => {
  expect((await platform().admin.send("GET", "/readyz")).status).toBe(200);
  expect(platform().output).not.toMatch(/"level":"(error|fatal)"/);
});

test.each([
  ["cut off", '{"source": {', 400],
  ["a list", "[]", 400],
  ["null", "null", 400],
  ["a text", '"workload"', 400],
  ["empty", "", 400],
  ["nested a hundred thousand deep", "[".repeat(100_000), 400],
  ["an object in an object a hundred thousand deep", '{"a":'.repeat(100_000), 400],
  ["no UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), 400],
  ["of two values", "{} {}", 400],
  ["repeating a member of rl", '{"source":{"command":["true"]},"rl":{"mode":"a","mode":"b"}}', 400],
  ["a number beyond all numbers", '{"source":{"command":["true"]},"outcome":{"max_cost_usd":1e999}}', 400],
])("a body that is %s is refused", { timeout: 30_000 }, async (_, body, expected) => {
  const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
  for (const url of ["/v1/workloads", "/v1/workloads/validate", "/v1/secrets", "/v1/pools"]) {
    const { status } = await platform().admin.send("POST", url, { body, headers });
    expect([url, status]).toEqual([url, expected]);
  }
  const { status } = await platform().admin.send("POST", "/graphql", { body, headers });
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(500);
});

test("a body of ten megabytes is refused or cut off", { timeout: 60_000 }, async () => {
  const headers = { authorization, "content-type": "application/json", "idempotency-key": "large" };
  const body = `{"source":{"command":["${"x".repeat(TEN_MEGABYTES)}"]}}`;
  const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  for (const url of ["/v1/workloads", "/v1/secrets", "/graphql", "/graphql/stream"]) {
    const told = rawRequest(`POST ${url}`, headers, body);
    const lines = Object.entries({ host: "localhost", ...headers, "transfer-encoding": "chunked" });
    const untold = `POST ${url} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${chunk}`;
    for (const request of [told, untold]) expect([413, null]).toContain(await rawStatus(platform().origin, request));
  }
  const announced = rawRequest("POST /graphql", { ...headers, "content-length": String(TEN_MEGABYTES) });
  expect(await rawStatus(platform().origin, announced)).toBe(413);
});

test("a prototype's names in a body are names like others", { timeout: 30_000 }, async () => {
  const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
  const body =
    '{"source":{"command":["true"]},"__proto__":{"name":"polluted"},"constructor":{"prototype":{"name":"polluted"}},"toString":1}';
  const { status, body: answer } = await platform().admin.send("POST", "/v1/workloads", { body, headers });
  expect(status).toBe(202);
  expect((await platform().admin.rest("getWorkload", { path: { id: answer.id } })).body.name).toBe("");
});

const deep = (levels: number) => `{ workload(id: "x") ${"{ placements ".repeat(levels)}{ id }${"}".repeat(levels)} }`;
test.each([
  ["as deep as a well", deep(60)],
  ["of a thousand aliases", `{ ${Array.from({ length: 1_000 }, (_, i) => `a${i}: me { keyId }`).join(" ")} }`],
  ["of fragments that call each other", "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }"],
  ["of fragments that double each time", doublingFragments(25)],
  ["of ten thousand tokens", `{ me { ${"keyId ".repeat(10_000)} } }`],
  ["of one directive many times", `{ me { keyId ${"@include(if: true) ".repeat(2_000)} } }`],
  ["about what there is not", "{ nothing { here } }"],
  ["of nested introspection", `{ __schema { types { ${"fields { type { ".repeat(8)} name ${"} } ".repeat(8)} } } }`],
  ["of a number that is none", "{ workloads(first: 99999999999999999999) { nodes { id } } }"],
  [
    "of a thousand root fields",
    `mutation { ${Array.from({ length: 1_000 }, (_, i) => `a${i}: grantCredit(input: { amountUsd: 1 }) { account { id } }`).join(" ")} }`,
  ],
])("a query %s is refused with a code", { timeout: 30_000 }, async (_, query) => {
  const { status, data, errors } = await platform().admin.graphql(query);
  expect(status).toBeLessThan(500);
  expect(data).toBeNull();
  expect(errors.length).toBeGreaterThan(0);
  for (const error of errors) {
    expect(error.extensions.code).toMatch(/^[A-Za-z_]+$/);
    expect(error.extensions.code).not.toMatch(/internal/i);
  }
});

test.each([
  ["a list of operations", [{ query: "{ me { keyId } }" }]],
  ["variables that are a list", { query: "{ me { keyId } }", variables: [] }],
  ["a query that is a number", { query: 5 }],
  ["no query", {}],
  ["an operation's name that is not there", { query: "query a { me { keyId } }", operationName: "b" }],
  ["an unknown persisted query", { extensions: { persistedQuery: { version: 1, sha256Hash: "0".repeat(64) } } }],
  [
    "a variable of another type",
    { query: "query($id: ID!) { workload(id: $id) { id } }", variables: { id: { a: 1 } } },
  ],
])("a GraphQL request with %s is refused", { timeout: 30_000 }, async (_, body) => {
  for (const url of ["/graphql", "/graphql/stream"]) {
    const { status, body: answer } = await platform().admin.send("POST", url, { body });
    expect(status).toBeLessThan(500);
    expect(JSON.stringify(answer)).toContain("error");
  }
});

test("a mutation does not run by GET, nor from a form of another site", { timeout: 30_000 }, async () => {
  const before = (await platform().admin.query("{ account { balanceUsd } }")).account.balanceUsd;
  const query = "mutation { grantCredit(input: { amountUsd: 1 }) { account { id } } }";
  const get = await platform().admin.send("GET", `/graphql?query=${encodeURIComponent(query)}`);
  const form = await platform().admin.send("POST", "/graphql", {
    body: JSON.stringify({ query }),
    headers: { "content-type": "text/plain" },
  });
  for (const { status } of [get, form]) {
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
  }
  expect((await platform().admin.query("{ account { balanceUsd } }")).account.balanceUsd).toBe(before);
});

test.each([
  ["a path that is no UTF-8", rawRequest("GET /v1/workloads/%ff%fe", { authorization })],
  ["a NUL in a path", rawRequest("GET /v1/workloads/%00", { authorization })],
  ["a broken escape", rawRequest("GET /v1/workloads/%zz", { authorization })],
  ["a way out of a folder", rawRequest("GET /v1/workloads/x/outputs/..%2f..%2f..%2fetc%2fpasswd", { authorization })],
  ["a way out of the root", rawRequest("GET /../../../../etc/passwd", { authorization })],
  ["an endless path", rawRequest(`GET /v1/workloads/${"x".repeat(12_000)}`, { authorization })],
  ["headers of a hundred kilobytes", rawRequest("GET /v1/me", { authorization, "x-large": "x".repeat(100_000) })],
  [
    "a thousand headers",
    rawRequest("GET /v1/me", Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`x-${i}`, "1"]))),
  ],
  ["a header in a header", rawRequest("POST /v1/workloads", { authorization, "idempotency-key": "a\rb" })],
  ["a key of another script", rawRequest("POST /v1/workloads", { authorization, "idempotency-key": "ключ" }, "{}")],
  ["two lengths", rawRequest("POST /v1/workloads", { authorization, "transfer-encoding": "chunked" }, "{}")],
  ["an unknown method", rawRequest("BREW /v1/workloads", { authorization })],
  ["no HTTP", "hello?\r\n\r\n"],
  ["a body with no media type", rawRequest("POST /v1/workloads", { authorization, "idempotency-key": "k" }, "{}")],
  ["an upgrade to nothing", rawRequest("GET /graphql", { connection: "upgrade", upgrade: "websocket" })],
])("a request with %s is refused or cut off", { timeout: 30_000 }, async (_, request) => {
  const status = await rawStatus(platform().origin, request);
  if (status === null) return; // cut off without an answer, which is one
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(500);
});

test("a name from outside never becomes a header", { timeout: 30_000 }, async () => {
  const client = platform().admin;
  const headers = { "content-type": "application/octet-stream" };
  for (const name of ["a\r\nset-cookie: x=1", "../up", "a/b", "\u0000", "..", "x".repeat(300)]) {
    const { status } = await client.send("POST", `/v1/assets/upload?name=${encodeURIComponent(name)}`, {
      body: "x",
      headers,
    });
    expect([name, status]).toEqual([name, 400]);
  }
  const requestId = await client.send("GET", "/v1/me", { headers: { "x-request-id": "x".repeat(4_000) } });
  expect(requestId.status).toBe(200);
  expect(requestId.headers.get("x-request-id")!.length).toBeLessThan(300);
});

test.each([
  ["leaves its folder", [{ path: "../out.txt", content: "x" }]],
  ["names a file of the machine", [{ path: "/etc/cron.d/x", content: "x" }]],
  ["links to a file of the machine", [{ path: "passwd", type: "symlink" as const }]],
  ["holds a device", [{ path: "dev", type: "character-device" as const }]],
])("an archive that %s is refused and leaves nothing", { timeout: 30_000 }, async (_, samples) => {
  const client = platform().admin;
  const headers = { "content-type": "application/octet-stream" };
  const before = (await client.rest("listAssets")).body.assets.length;
  const body = await tarOf(samples);
  const { status, body: answer } = await client.rest("uploadAsset", { query: { name: "evil.tar" }, body, headers });
  expect([status, answer.error]).toEqual([400, "unsafe_archive"]);
  const ready = (await client.rest("listAssets")).body.assets.filter(
    (asset: { state: string }) => asset.state === "ready",
  );
  expect(ready.length).toBeLessThanOrEqual(before);
});

test("what a guest writes into outputs cannot reach the machine's files", { timeout: 60_000 }, async () => {
  const client = platform().admin;
  const id = await submit(
    client,
    script("mkdir -p outputs; ln -s /etc/hostname outputs/link; ln -s / outputs/root; echo ok > outputs/ok.txt"),
  );
  await ends(client, id);
  const { outputs } = (await client.rest("listWorkloadOutputs", { path: { id } })).body;
  for (const { name } of outputs ?? []) {
    const { bytes } = await client.rest("downloadWorkloadOutput", { path: { id, name } });
    expect(bytes.length).toBeLessThan(100_000);
    expect(bytes.includes("root:x:0:0")).toBe(false);
  }
});

function doublingFragments(levels: number): string {
  const fragments = Array.from({ length: levels }, (_, i) => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`);
  return `{ ...F0 } ${fragments.join(" ")} fragment F${levels} on Query { me { keyId } }`;
}
